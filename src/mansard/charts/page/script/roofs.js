// Axes, grid and roofs of a chart, and the shapes of its markers.

const FONT = "system-ui, sans-serif";
const TEXT = 12;
const LINE = 15;

/** Ticks of a logarithmic scale: [values with a label, values without]. */
function logTicks(scale, most) {
  const [low, high] = d3.extent(scale.domain());
  const decades = Math.log10(high / low);
  if (decades < 1.3) return [scale.copy().ticks(Math.min(6, most)), []];
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const powers = d3.range(first, Math.floor(Math.log10(high) + 1e-9) + 1).map((power) => Number(`1e${power}`));
  const step = Math.ceil(powers.length / most);
  const named = powers.filter((_, place) => place % step === 0);
  const between = step > 1 ? powers : d3.range(first - 1, first + powers.length)
    .flatMap((power) => d3.range(2, 10).map((digit) => Number(`${digit}e${power}`)))
    .filter((value) => value >= low && value <= high);
  return [named, between];
}

/** A tick as text: "10 T", "0.01"; three digits where the view is narrow. */
function tickText(value, unit) {
  if (unit === null) return String(Number(value.toPrecision(3)));
  return formatSi(Number(value.toPrecision(3)), unit).replace(/\.0+(?= |$)/, "").replace(/(\.\d*?)0+(?= |$)/, "$1");
}

/** Draw grid, frame, ticks and titles. Units: null for plain numbers. */
function paintAxes(ctx, plot, { xUnit, yUnit, xTitle, yTitle, bottom = plot.area.bottom }) {
  const { left, right, top } = plot.area;
  ctx.font = `${TEXT}px ${FONT}`;
  ctx.lineWidth = 1;
  const [xs, xMinor] = logTicks(plot.x, Math.max(3, Math.floor((right - left) / 70)));
  const [ys, yMinor] = logTicks(plot.y, Math.max(3, Math.floor((plot.area.bottom - top) / 32)));
  ctx.strokeStyle = palette.grid;
  ctx.beginPath();
  for (const value of xs) { ctx.moveTo(sharp(plot.x(value)), top); ctx.lineTo(sharp(plot.x(value)), plot.area.bottom); }
  for (const value of ys) { ctx.moveTo(left, sharp(plot.y(value))); ctx.lineTo(right, sharp(plot.y(value))); }
  ctx.stroke();
  ctx.strokeStyle = palette.ink;
  ctx.beginPath();
  for (const value of xMinor) { ctx.moveTo(sharp(plot.x(value)), bottom); ctx.lineTo(sharp(plot.x(value)), bottom + 3); }
  for (const value of yMinor) { ctx.moveTo(left, sharp(plot.y(value))); ctx.lineTo(left - 3, sharp(plot.y(value))); }
  for (const value of xs) { ctx.moveTo(sharp(plot.x(value)), bottom); ctx.lineTo(sharp(plot.x(value)), bottom + 6); }
  for (const value of ys) { ctx.moveTo(left, sharp(plot.y(value))); ctx.lineTo(left - 6, sharp(plot.y(value))); }
  ctx.stroke();
  ctx.strokeRect(sharp(left), sharp(top), Math.round(right - left), Math.round(plot.area.bottom - top));
  ctx.fillStyle = palette.ink;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  for (const value of xs) ctx.fillText(tickText(value, xUnit), plot.x(value), bottom + 8);
  ctx.fillText(xTitle, (left + right) / 2, bottom + 25);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const value of ys) ctx.fillText(tickText(value, yUnit), left - 9, plot.y(value));
  ctx.save();
  ctx.translate(13, (top + plot.area.bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillText(yTitle, 0, 0);
  ctx.restore();
}

function sharp(value) {
  return Math.round(value) + 0.5;
}

/** Text on a patch of the ground, so that lines below it do not cross it. */
function haloText(ctx, text, x, y) {
  ctx.lineWidth = 3.5;
  ctx.strokeStyle = palette.ground;
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
}

/** Draw the roofs that are in view and label them; return boxes that the labels cover. */
function paintRoofs(ctx, plot, roofs, obstacles) {
  ctx.save();
  clip(ctx, plot.area);
  for (const roof of roofs) {
    ctx.strokeStyle = roof.used ? palette.ink : palette.faint;
    ctx.lineWidth = roof.used ? 1.6 : 1.2;
    ctx.beginPath();
    ctx.moveTo(...endOf(plot, roof, roof.start, -1));
    ctx.lineTo(...endOf(plot, roof, roof.end, 1));
    ctx.stroke();
  }
  const covered = labelSlopes(ctx, plot, roofs.filter((roof) => roof.kind === "bandwidth"), obstacles);
  ctx.restore();
  covered.push(...labelFlats(ctx, plot, roofs.filter((roof) => roof.kind === "compute")));
  return covered;
}

/** Pixel of a roof's end; a flat roof reaches the edge of the view on its right. */
function endOf(plot, roof, [x, y], side) {
  const atEdge = roof.kind === "compute" && side > 0;
  return [atEdge ? plot.area.right : plot.x(x), plot.y(y)];
}

/**
 * Flat roofs are labelled at their right end beside the chart. A narrow chart has room there for
 * a letter only: the buttons that show and hide the roofs say what it stands for.
 */
function labelFlats(ctx, plot, flats) {
  const { top, bottom, right } = plot.area;
  const seen = flats.filter((roof) => plot.y(roof.value) > top && plot.y(roof.value) < bottom && plot.x(roof.start[0]) < right);
  const isNarrow = plot.width < NARROW;
  const heights = seen.map((roof) => plot.y(roof.value));
  const places = spread(heights, LINE, top + LINE / 2, bottom - LINE / 2);
  ctx.font = `${TEXT}px ${FONT}`;
  ctx.textBaseline = "middle";
  return seen.map((roof, index) => {
    ctx.fillStyle = roof.used ? palette.ink : palette.soft;
    const label = isNarrow ? letterOf(roof) : roof.label;
    const [bend, end] = isNarrow ? [2, 5] : [6, 12];
    const length = ctx.measureText(label).width;
    ctx.strokeStyle = palette.soft;
    ctx.lineWidth = 0.8;
    ctx.beginPath();
    ctx.moveTo(right, heights[index]);
    ctx.lineTo(right + bend, heights[index]);
    ctx.lineTo(right + end, places[index]);
    ctx.stroke();
    ctx.textAlign = "left";
    ctx.fillText(label, right + end + 3, places[index]);
    return { x: right + end + 3 + length / 2, y: places[index], width: length, height: LINE };
  });
}

/** Charts below this width have no room for words beside them. */
const NARROW = 620;

/** The letter of a flat roof, a for the highest. */
function letterOf(roof) {
  const flats = page.roofline.roofs.filter((other) => other.kind === "compute").sort((one, other) => other.value - one.value);
  return String.fromCharCode(97 + flats.indexOf(roof));
}

/** Slopes less apart than this part of them are one line to the eye, and get one label. */
const ONE_LINE = 0.05;

/** The label of each slope, as mansard.charts.frame.slope_labels. */
function slopeLabels(slopes) {
  const found = [];
  for (const roof of slopes) {
    const near = found.find(([first]) => Math.abs(first.value - roof.value) / Math.max(first.value, roof.value) <= ONE_LINE);
    if (near) near.push(roof);
    else found.push([roof]);
  }
  return found.map((roofs) => ({ roof: roofs[0], label: together(roofs.map((roof) => roof.label)) }));
}

/** Join labels, what all end with (the unit) said once: "shared 33.4, L1 33.3 TB/s". */
function together(labels) {
  const words = labels.map((label) => label.split(" "));
  let alike = 0;
  while (words.every((own) => own.length > alike + 1 && own.at(-1 - alike) === words[0].at(-1 - alike))) alike += 1;
  return [...words.slice(0, -1).map((own) => own.slice(0, own.length - alike).join(" ")), labels.at(-1)].join(", ");
}

/** Slopes are parallel: their labels lie along them, in coordinates along and across. */
function labelSlopes(ctx, plot, slopes, obstacles) {
  const { left, top, right, bottom } = plot.area;
  const angle = Math.atan2(plot.y(10) - plot.y(1), plot.x(10) - plot.x(1));
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
  const turn = (x, y) => [x * cosine + y * sine, x * sine - y * cosine];
  ctx.font = `${TEXT}px ${FONT}`;
  const seen = slopeLabels(slopes).flatMap(({ roof, label }) => {
    const [ax, ay] = endOf(plot, roof, roof.start, -1);
    const [bx, by] = endOf(plot, roof, roof.end, 1);
    // Cut the line to the view: a share of its length from either end.
    const from = Math.max(0, (left - ax) / (bx - ax), (bottom - ay) / (by - ay));
    const to = Math.min(1, (right - ax) / (bx - ax), (top - ay) / (by - ay));
    const length = ctx.measureText(label).width;
    if ((to - from) * Math.hypot(bx - ax, by - ay) < length + 20) return [];
    const [start, across] = turn(ax + (bx - ax) * from, ay + (by - ay) * from);
    const [end] = turn(ax + (bx - ax) * to, ay + (by - ay) * to);
    return [{ roof, label, across, start, end, length }];
  });
  const marks = obstacles.map((mark) => [...turn(mark.x, mark.y), mark.r]);
  const strips = alongLines(seen, marks, LINE);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  return strips.flatMap((strip, index) => {
    const middle = (strip.low + strip.high) / 2;
    const pixel = (along) => [along * cosine + middle * sine, along * sine - middle * cosine];
    ctx.save();
    ctx.translate(...pixel(strip.begin));
    ctx.rotate(angle);
    ctx.fillStyle = seen[index].roof.used ? palette.ink : palette.soft;
    haloText(ctx, seen[index].label, 0, 0);
    ctx.restore();
    return d3.range(strip.begin + LINE / 2, strip.end, LINE).map((along) => {
      const [x, y] = pixel(along);
      return { x, y, width: LINE, height: LINE };
    });
  });
}

/** Put the outline of a marker on the path: shape is the memory level, r half its width. */
function shape(ctx, level, x, y, r) {
  if (level === "l1") {
    ctx.moveTo(x + r, y);
    ctx.arc(x, y, r, 0, 2 * Math.PI);
  } else if (level === "l2") {
    const half = r * 0.89;
    ctx.rect(x - half, y - half, 2 * half, 2 * half);
  } else if (level === "shared") {
    polygon(ctx, [[x, y - r * 1.2], [x + r * 1.2, y], [x, y + r * 1.2], [x - r * 1.2, y]]);
  } else {
    const up = level === "link" ? -1 : 1;
    polygon(ctx, [[x, y - up * r * 1.25], [x + r * 1.15, y + up * r * 0.85], [x - r * 1.15, y + up * r * 0.85]]);
  }
}

function polygon(ctx, [first, ...others]) {
  ctx.moveTo(...first);
  for (const point of others) ctx.lineTo(...point);
  ctx.closePath();
}

/** Half the width of a marker in pixels for a share of the time (areas are in square points). */
function radiusOf(share) {
  const area = Math.max(page.area.least, page.area.all * (share ?? 0));
  return (Math.sqrt(area) / 2) * (96 / 72);
}
