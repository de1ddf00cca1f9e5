// Where labels go so that they never overlap: as mansard.charts.placement does for pictures.

const STEPS = [2, 6, 11, 17, 24, 33, 44, 58, 75, 95, 120];
const DIRECTIONS = [[1, 1], [-1, 1], [1, -1], [-1, -1], [0, 1], [0, -1], [1, 0], [-1, 0]];

/** Boxes have a centre (x, y), a width and a height. */
function overlaps(a, b) {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

/**
 * Find a place near one of its markers for each label, in order of importance; null where the
 * area is full. A place that covers nothing is best, then one that covers only markers.
 *
 * @param labels [{width, height, marks: [{x, y, r}]}]
 * @param obstacles boxes that should not be covered
 * @param area {left, top, right, bottom}
 */
function placeLabels(labels, obstacles, area) {
  const taken = [];
  return labels.map((label) => {
    const box = firstFree(label, [...taken, ...obstacles], area) ?? firstFree(label, taken, area);
    if (box) taken.push(box);
    return box;
  });
}

function firstFree(label, occupied, area) {
  const { width, height } = label;
  for (const step of STEPS) {
    for (const mark of label.marks) {
      for (const [right, down] of DIRECTIONS) {
        // A diagonal neighbour touches a round marker at 45 degrees.
        const reach = mark.r * (right && down ? Math.SQRT1_2 : 1) + step;
        const x = mark.x + right * (reach + width / 2);
        const y = mark.y + down * (reach + height / 2);
        if (x - width / 2 < area.left || x + width / 2 > area.right) continue;
        if (y - height / 2 < area.top || y + height / 2 > area.bottom) continue;
        const box = { x, y, width, height, mark };
        if (!occupied.some((other) => overlaps(box, other))) return box;
      }
    }
  }
  return null;
}

/** Move positions as little as needed so that neighbours are at least `gap` apart. */
function spread(positions, gap, low, high) {
  const count = positions.length;
  const distance = (count - 1) * gap > high - low ? (high - low) / Math.max(1, count - 1) : gap;
  const order = d3.range(count).sort((a, b) => positions[a] - positions[b]);
  // With the gaps taken out, "apart by gap" becomes "not decreasing": isotonic regression.
  const blocks = [];
  order.forEach((index, rank) => {
    let [mean, size] = [positions[index] - rank * distance, 1];
    while (blocks.length && blocks.at(-1)[0] > mean) {
      const [before, members] = blocks.pop();
      mean = (before * members + mean * size) / (members + size);
      size += members;
    }
    blocks.push([mean, size]);
  });
  const flat = blocks.flatMap(([mean, size]) => Array(size).fill(mean));
  const result = Array(count);
  const slack = high - (count - 1) * distance;
  order.forEach((index, rank) => {
    result[index] = Math.min(Math.max(flat[rank], low), slack) + rank * distance;
  });
  return result;
}

/**
 * Choose where along parallel lines their labels lie, above or below their line: no two labels
 * touch where that can be, then the place that covers the fewest markers wins.
 *
 * @param lines [{across, start, end, length}] in coordinates along and across the lines
 * @param marks [[along, across, radius]]
 */
function alongLines(lines, marks, height) {
  const placed = [];
  for (const line of lines) {
    const first = line.start + height;
    const last = Math.max(first, line.end - line.length - height);
    let best = null;
    for (let begin = first; begin <= last; begin += height) {
      for (const low of [line.across + 2, line.across - 2 - height]) {
        const strip = { begin, end: begin + line.length, low, high: low + height };
        const blocked = placed.some(
          (other) => strip.begin < other.end + height && other.begin < strip.end + height
            && strip.low < other.high && other.low < strip.high,
        );
        let cost = blocked ? 1e6 : 0;
        for (const [along, across, r] of marks) {
          if (strip.begin - r < along && along < strip.end + r && strip.low - r < across && across < strip.high + r) cost += 1;
        }
        for (const other of lines) if (strip.low < other.across && other.across < strip.high) cost += 1;
        if (best === null || cost < best.cost) best = { ...strip, cost };
      }
    }
    placed.push(best);
  }
  return placed;
}
