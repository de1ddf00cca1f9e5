// What the page uses of d3. See README.md for how d3.min.js is made of it.
export { create, pointer, select } from "d3-selection";
export { extent, greatest, group, max, range, rollup, sum } from "d3-array";
export { path } from "d3-path";
export { scaleLinear, scaleLog } from "d3-scale";
export { zoom, zoomIdentity } from "d3-zoom";
