// The time view (after arXiv 2009.04598): least time of the FLOP against least time of the bytes,
// per launch. Filled: what the work needs. Hollow: the same intensity at the measured time.

/** Height of the strip for kernels without FLOP, and its distance from the chart. */
const STRIP = 26;
const STRIP_GAP = 6;

class TimeView {
  constructor() {
    this.frame = page.time.frame;
    this.level = page.time.level;
    this.strip = STRIP_GAP + STRIP;
  }

  margin(width) {
    return { left: 68, top: 44, bottom: 44 + this.strip, right: width < NARROW ? 14 : 24 };
  }

  /** Where a row stands in seconds per launch: [byte time, FLOP time, measured], or null. */
  placeOf(row) {
    const byte = row.floors_s[this.level];
    const pipes = [row.floors_s.tensor, row.floors_s.vector].filter(known);
    if (row.others || !known(byte) || !pipes.length || !(row.duration_s > 0) || byte === 0) return null;
    return [byte, Math.max(...pipes), row.duration_s].map((time) => time / row.launches);
  }

  marks(plot) {
    const marks = emptyMarks(plot.rows.length * 2);
    let count = 0;
    const put = (index, r, kind, x, y) => {
      const [left, top] = this.clamp(x, y);
      marks.x[count] = plot.x0(left);
      marks.y[count] = y > 0 ? plot.y0(top) : NaN;
      marks.r[count] = r;
      marks.row[count] = index;
      marks.kind[count] = kind;
      count += 1;
    };
    plot.rows.forEach((row, index) => {
      const place = this.placeOf(row);
      if (place === null) return;
      const [byte, flop, measured] = place;
      const factor = measured / Math.max(byte, flop);
      const toEdge = this.toEdge(byte, flop, factor);
      const r = radiusOf(shareOf(row));
      put(index, flop > 0 ? r : Math.min(r, STRIP / 2), 1, byte * factor, flop * factor);
      put(index, 2.6, 0, byte * toEdge, flop * toEdge);
    });
    marks.count = count;
    return marks;
  }

  /** How far a least time below the axes moves along its line of equal intensity, to their edge. */
  toEdge(byte, flop, factor) {
    const [xMin, , yMin] = this.frame;
    if (!(flop > 0)) return 1;
    return byte * factor >= xMin && flop * factor >= yMin ? Math.max(xMin / byte, yMin / flop, 1) : 1;
  }

  clamp(x, y) {
    const [xMin, xMax, yMin, yMax] = this.frame;
    return [Math.min(Math.max(x, xMin), xMax), Math.min(Math.max(y, yMin), yMax)];
  }

  /** Kernels without FLOP stand on the strip below, wherever the chart is moved. */
  screenY(plot, marks, mark) {
    return Number.isNaN(marks.y[mark]) ? plot.area.bottom + STRIP_GAP + STRIP / 2 : plot.transform.applyY(marks.y[mark]);
  }

  back(plot, ctx) {
    const { left, right, bottom, top } = plot.area;
    const level = page.resources[this.level];
    ctx.fillStyle = palette.grid;
    ctx.fillRect(left, bottom + STRIP_GAP, right - left, STRIP);
    paintAxes(ctx, plot, {
      xUnit: "s", yUnit: "s", xTitle: `${level} byte time per launch`, yTitle: "FLOP time per launch", bottom: bottom + this.strip,
    });
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    ctx.fillText("no FLOP", left - 6, bottom + STRIP_GAP + STRIP / 2);
    if (page.time.bandwidth !== null) this.bytesAxis(plot, ctx, level);
    ctx.save();
    clip(ctx, plot.area);
    this.lines(plot, ctx);
    ctx.restore();
    this.first = firstMarks(plot);
    this.labels = null;
    if (!plot.marks.count) {
      ctx.fillStyle = palette.soft;
      ctx.textAlign = "center";
      ctx.fillText("no kernel here with known floors and time", (left + right) / 2, (top + bottom) / 2);
    }
  }

  /** The bytes that take a byte time, above the chart. */
  bytesAxis(plot, ctx, level) {
    const { left, right, top } = plot.area;
    const bytes = d3.scaleLog(plot.x.domain().map((time) => time * page.time.bandwidth), plot.x.range());
    ctx.fillStyle = palette.soft;
    ctx.strokeStyle = palette.soft;
    ctx.lineWidth = 1;
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    for (const value of logTicks(bytes, Math.max(3, Math.floor((right - left) / 80)))[0]) {
      ctx.beginPath();
      ctx.moveTo(sharp(bytes(value)), top);
      ctx.lineTo(sharp(bytes(value)), top - 4);
      ctx.stroke();
      ctx.fillText(tickText(value, "B"), bytes(value), top - 6);
    }
    ctx.fillText(`${level} bytes per launch at ${formatSi(page.time.bandwidth, "B/s")}`, (left + right) / 2, top - 24);
  }

  /** Machine balance, lines of equal run time, and the box in which launching takes longer. */
  lines(plot, ctx) {
    const [xMin, xMax, yMin, yMax] = this.frame;
    const px = (time) => plot.x(time);
    const py = (time) => plot.y(time);
    ctx.font = `${TEXT}px ${FONT}`;
    const box = page.time.launch_s;
    if (box > xMin && box > yMin) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(px(xMin), py(box), px(box) - px(xMin), py(yMin) - py(box));
      ctx.strokeStyle = palette.soft;
      ctx.setLineDash([5, 4]);
      ctx.stroke();
      ctx.clip();
      ctx.setLineDash([]);
      ctx.strokeStyle = palette.faint;
      ctx.lineWidth = 0.6;
      ctx.beginPath();
      for (let x = -plot.height; x < plot.width; x += 14) { ctx.moveTo(x, plot.height); ctx.lineTo(x + plot.height, 0); }
      ctx.stroke();
      ctx.restore();
    }
    ctx.strokeStyle = palette.soft;
    ctx.fillStyle = palette.soft;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.setLineDash([4, 3]);
    ctx.lineWidth = 0.8;
    const inView = page.time.iso_times.filter((time) => time > yMin && time > xMin);
    ctx.beginPath();
    for (const time of inView) {
      ctx.moveTo(px(xMin), py(time));
      ctx.lineTo(px(time), py(time));
      ctx.lineTo(px(time), py(yMin));
    }
    ctx.stroke();
    ctx.setLineDash([]);
    for (const time of inView) {
      if (px(time) - plot.area.left < 110) continue;
      // Below its line where the top of the box would cross the text above it.
      const crossed = box > time && py(time) - py(box) < LINE + 2;
      ctx.textBaseline = crossed ? "top" : "bottom";
      haloText(ctx, `${formatSi(time, "s", 1)} per launch`, plot.area.left + 5, py(time) + (crossed ? 3 : -2));
    }
    ctx.textBaseline = "bottom";
    const low = Math.max(xMin, yMin);
    const high = Math.min(xMax, yMax);
    ctx.strokeStyle = palette.ink;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    ctx.moveTo(px(low), py(low));
    ctx.lineTo(px(high), py(high));
    ctx.stroke();
    ctx.fillStyle = palette.ink;
    ctx.textAlign = "right";
    const named = high * 0.5;
    haloText(ctx, "machine balance", px(named) - 10, Math.max(py(named) + 4, plot.area.top + LINE));
    if (box > xMin && box > yMin) haloText(ctx, `one launch: ${formatSi(box, "s")}`, px(box) - 6, py(box) - 3);
  }

  mark(ctx, marks, mark, x, y, plot) {
    if (marks.kind[mark] === 0) {
      ctx.fillStyle = palette[this.level];
      ctx.beginPath();
      shape(ctx, this.level, x, y, 3);
      ctx.fill();
      return;
    }
    // The link to the filled marker, which comes next.
    ctx.strokeStyle = palette.faint;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(...plot.at(mark + 1));
    ctx.stroke();
    ctx.strokeStyle = palette.ink;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    ctx.arc(x, y, marks.r[mark], 0, 2 * Math.PI);
    ctx.stroke();
  }

  front(plot, ctx) {
    this.labels ??= numberMarks(ctx, plot, boxesOf(this.first));
    paintNumbers(ctx, this.labels);
  }

  join(plot, ctx, index) {
    const own = marksOf(plot, index);
    if (own.length < 2) return;
    const [real, best] = own.map((mark) => plot.at(mark));
    ctx.save();
    clip(ctx, plot.markArea(), 12);
    ctx.strokeStyle = palette.accent;
    ctx.fillStyle = palette.accent;
    ctx.lineWidth = 2.4;
    ctx.beginPath();
    ctx.moveTo(...real);
    ctx.lineTo(...best);
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(...real, Math.max(5, plot.marks.r[own[0]]), 0, 2 * Math.PI);
    ctx.stroke();
    ctx.beginPath();
    shape(ctx, this.level, ...best, 5);
    ctx.fill();
    ctx.restore();
  }

  tip(row) {
    const [byte, flop, measured] = this.placeOf(row);
    return [
      `${row.place + 1}  ${titleOf(row, 90)}`,
      `${formatSi(measured, "s")} per launch, ${countText(row.launches, "launch")}, ${formatShare(shareOf(row))} of the time`,
      `least time of its ${page.resources[this.level]} bytes ${formatSi(byte, "s")}, of its FLOP ${formatSi(flop, "s")}`,
      `bound ${boundLabel(row)}, efficiency ${efficiencyLabel(row)}`,
    ];
  }
}
