// The Roofline view: one marker per kernel and memory level under the roofs of the machine.

/** Kernels that get a number on the chart, and pixels of the chart per number. */
const NUMBERED = 40;
const PIXELS_PER_NUMBER = 7000;

/** Markers beyond which they would hide the roofs, which then are drawn above them as well. */
const MANY = 4000;

/** Markers that numbers and labels keep clear of. */
const OBSTACLES = 150;

/** Least width between the outer edges of markers for which small ones are copied, not drawn. */
const STAMPED = 5;

class RooflineView {
  constructor() {
    this.frame = page.roofline.frame;
    this.levels = new Set(page.levels);
    const flats = page.roofline.roofs.filter((roof) => roof.kind === "compute");
    const used = flats.filter((roof) => roof.used);
    this.paths = new Set((used.length ? used : flats).map((roof) => roof.name));
    this.stamps = new Map();
  }

  margin(width) {
    return { left: 66, top: 12, bottom: 44, right: width < NARROW ? 20 : 168 };
  }

  marks(plot) {
    const marks = emptyMarks(plot.rows.length * this.levels.size);
    let count = 0;
    plot.rows.forEach((row, index) => {
      if (row.others || !(row.flop_per_s > 0)) return;
      const r = radiusOf(shareOf(row));
      page.levels.forEach((level, kind) => {
        const intensity = row.intensity[level];
        if (!this.levels.has(level) || !(intensity > 0)) return;
        const [x, y, outside] = this.clamp(intensity, row.flop_per_s);
        marks.x[count] = plot.x0(x);
        marks.y[count] = plot.y0(y);
        marks.r[count] = r;
        marks.row[count] = index;
        marks.kind[count] = 2 * kind + (outside ? 1 : 0);
        count += 1;
      });
    });
    marks.count = count;
    return marks;
  }

  /** The place, or the nearest one on the edge of the frame. */
  clamp(x, y) {
    const [xMin, xMax, yMin, yMax] = this.frame;
    const inside = [Math.min(Math.max(x, xMin), xMax), Math.min(Math.max(y, yMin), yMax)];
    return [...inside, inside[0] !== x || inside[1] !== y];
  }

  screenY(plot, marks, mark) {
    return plot.transform.applyY(marks.y[mark]);
  }

  back(plot, ctx) {
    paintAxes(ctx, plot, {
      xUnit: null, yUnit: "", xTitle: "arithmetic intensity (FLOP/byte of each level)", yTitle: "performance (FLOP/s)",
    });
    this.roofs = page.roofline.roofs.filter(
      (roof) => (roof.kind === "compute" ? this.paths.has(roof.name) : this.levels.has(roof.name)),
    );
    this.first = firstMarks(plot);
    this.covered = paintRoofs(ctx, plot, this.roofs, this.first);
    this.labels = null;
    if (!plot.marks.count) {
      ctx.fillStyle = palette.soft;
      ctx.textAlign = "center";
      ctx.fillText("no kernel here with known FLOP, bytes and time", (plot.area.left + plot.area.right) / 2, (plot.area.top + plot.area.bottom) / 2);
    }
  }

  mark(ctx, marks, mark, x, y) {
    const level = page.levels[marks.kind[mark] >> 1];
    const outside = marks.kind[mark] & 1;
    const r = marks.r[mark];
    if (r < STAMPED) {
      const stamp = this.stamp(level, r, outside, ctx.getTransform().a);
      ctx.drawImage(stamp.image, x - stamp.half, y - stamp.half, 2 * stamp.half, 2 * stamp.half);
      return;
    }
    ctx.beginPath();
    shape(ctx, level, x, y, r);
    ctx.strokeStyle = palette[level];
    ctx.lineWidth = 1.5;
    ctx.stroke();
    if (outside) {
      ctx.fillStyle = palette[level];
      ctx.fill();
    }
  }

  /** A small marker drawn once, to be copied. */
  stamp(level, r, outside, scale) {
    const size = Math.round(r * 4) / 4;
    const key = `${level} ${size} ${outside} ${scale} ${palette[level]}`;
    let stamp = this.stamps.get(key);
    if (!stamp) {
      const half = Math.ceil(size * 1.3 + 2);
      const image = document.createElement("canvas");
      image.width = image.height = Math.round(2 * half * scale);
      const ctx = image.getContext("2d");
      ctx.scale(scale, scale);
      ctx.beginPath();
      shape(ctx, level, half, half, size);
      ctx.strokeStyle = ctx.fillStyle = palette[level];
      ctx.lineWidth = 1.1;
      ctx.stroke();
      if (outside) ctx.fill();
      stamp = { image, half };
      this.stamps.set(key, stamp);
    }
    return stamp;
  }

  front(plot, ctx) {
    if (plot.marks.count > MANY) paintRoofs(ctx, plot, this.roofs, this.first);
    this.labels ??= numberMarks(ctx, plot, [...boxesOf(this.first), ...this.covered]);
    paintNumbers(ctx, this.labels);
  }

  /** Join the levels of one kernel. */
  join(plot, ctx, index) {
    const own = marksOf(plot, index);
    if (!own.length) return;
    const points = own.map((mark) => plot.at(mark));
    ctx.save();
    clip(ctx, plot.area, 12);
    ctx.strokeStyle = palette.ink;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    points.forEach(([x, y], place) => (place ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.stroke();
    own.forEach((mark, place) => {
      const level = page.levels[plot.marks.kind[mark] >> 1];
      ctx.beginPath();
      shape(ctx, level, ...points[place], Math.max(5, plot.marks.r[mark]));
      ctx.fillStyle = ctx.strokeStyle = palette[level];
      ctx.globalAlpha = 0.45;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.lineWidth = 2.2;
      ctx.stroke();
    });
    ctx.restore();
  }

  tip(row) {
    const intensities = page.levels
      .filter((level) => row.intensity[level] !== null)
      .map((level) => `${page.resources[level]} ${formatIntensity(row.intensity[level])}`);
    return [
      `${row.place + 1}  ${titleOf(row, 90)}`,
      `${formatSi(row.duration_s, "s")} in ${countText(row.launches, "launch")}, ${formatShare(shareOf(row))} of the time`,
      `${formatSi(row.flop_per_s, "FLOP/s")} at ${intensities.join(", ")} FLOP/byte`,
      ...(row.bound === null ? [] : [`bound ${boundLabel(row)}, efficiency ${efficiencyLabel(row)}, recoverable ${recoverableLabel(row)}`]),
    ];
  }
}

/** Markers of one row. */
function marksOf(plot, index) {
  const { row, count } = plot.marks;
  const found = [];
  for (let mark = 0; mark < count; mark += 1) if (row[mark] === index) found.push(mark);
  return found;
}

/** The first markers in view, as obstacles: rows come longest first. */
function firstMarks(plot) {
  const found = [];
  for (let mark = 0; mark < plot.marks.count && found.length < OBSTACLES; mark += 1) {
    const [x, y] = plot.at(mark);
    if (plot.isInside(x, y)) found.push({ x, y, r: plot.marks.r[mark], index: plot.marks.row[mark] });
  }
  return found;
}

function boxesOf(marks) {
  return marks.map(({ x, y, r }) => ({ x, y, width: 2 * r, height: 2 * r }));
}

/** Find places for the numbers of the first kernels in view. */
function numberMarks(ctx, plot, obstacles) {
  ctx.font = `bold 11px ${FONT}`;
  const groups = d3.group(plot.view.first.filter((mark) => mark.y < plot.area.bottom), (mark) => mark.index);
  const { left, top, right, bottom } = plot.area;
  const most = Math.min(NUMBERED, Math.round(((right - left) * (bottom - top)) / PIXELS_PER_NUMBER));
  const labels = [...groups].slice(0, most).map(([index, marks]) => {
    const text = String(plot.rows[index].place + 1);
    return { text, width: ctx.measureText(text).width + 3, height: 12, marks: marks.reverse() };
  });
  const boxes = placeLabels(labels, obstacles, plot.area);
  return labels.map((label, place) => ({ text: label.text, box: boxes[place] })).filter((label) => label.box);
}

function paintNumbers(ctx, labels) {
  ctx.font = `bold 11px ${FONT}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const { text, box } of labels) {
    const gap = Math.max(Math.abs(box.x - box.mark.x) - box.width / 2, Math.abs(box.y - box.mark.y) - box.height / 2);
    if (gap > box.mark.r + 5) {
      ctx.strokeStyle = palette.soft;
      ctx.lineWidth = 0.7;
      ctx.beginPath();
      ctx.moveTo(box.mark.x, box.mark.y);
      ctx.lineTo(box.x, box.y);
      ctx.stroke();
    }
    ctx.fillStyle = palette.ink;
    haloText(ctx, text, box.x, box.y + 0.5);
  }
}
