"""How large and how quick the HTML report of a large run is, in headless Chromium.

``python benchmarks/page.py [--kernels 20000] [--json]``

The run is synthetic but shaped as real ones: names as PyTorch, Triton, cuBLAS and cuDNN make
them, log-normal work, two phases, start times. Limits for 20,000 kernels: file 1.2 MB, first
paint 1 s, longest frame of ten wheel steps 120 ms. If plotly is installed (extra ``peers``), its
scattergl chart of the same points stands beside, at its usual settings.
Needs playwright and a Chromium (``--browser``).
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from mansard import engine  # noqa: E402
from mansard.analysis import analyze  # noqa: E402
from mansard.charts.page import page_html, read_detail  # noqa: E402
from mansard.charts.scene import roofline_scene  # noqa: E402
from mansard.model.machine import Ceiling, Machine  # noqa: E402
from mansard.model.provenance import Provenance  # noqa: E402
from mansard.store import open_run, write_run  # noqa: E402

LIMITS = {"megabytes": 1.2, "first_paint_s": 1.0, "zoom_frame_ms": 120.0}
REPEATS = 3

TERA = 1e12
COMPUTE = {"vector fp32": 66.2, "vector fp16": 132.2, "tensor tf32": 453.6, "tensor bf16": 858.6}
BANDWIDTH = {"shared": 33.3, "l1": 33.3, "l2": 8.9, "dram": 4.7}

FUNCTORS = ("CUDAFunctor_add", "MulFunctor", "BinaryFunctor", "GeluCUDAKernelImpl", "FillFunctor")
TYPES = ("float", "c10::Half", "c10::BFloat16", "double", "long")
OPS = ("add", "mul", "native_layer_norm", "gelu", "view", "transpose", "sum", "div", "_to_copy")


def name_of(number, rng):
    kind = number % 4
    if kind == 0:
        functor, first, second = rng.choice(FUNCTORS), rng.choice(TYPES), rng.choice(TYPES)
        return (
            f"void at::native::vectorized_elementwise_kernel<{rng.choice((2, 4, 8))}, at::native::"
            f"{functor}<{first}, {second}, {first}, {number}>, std::array<char*, 3ul>>(int, "
            f"at::native::{functor}<{first}, {second}, {first}, {number}>, std::array<char*, 3ul>)"
        )
    if kind == 1:
        return f"triton_per_fused_{'_'.join(rng.sample(OPS, 4))}_{number}"
    tile = f"{rng.choice((64, 128, 256))}x{rng.choice((64, 128, 192))}x{rng.choice((32, 64))}"
    if kind == 2:
        return (
            f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize{tile}_warpgroupsize1x1x1_"
            f"execute_segment_k_off_kernel__5x_cublas_{number}"
        )
    return (
        f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_{tile}_{number}_tn_align8>"
        f"(cutlass_80_tensorop_bf16_s16816gemm_bf16_{tile}_{number}_tn_align8::Params)"
    )


def machine():
    compute = [
        Ceiling(kind="compute", path=path, value=value * TERA, unit="flop/s")
        for path, value in COMPUTE.items()
    ]
    bandwidth = [
        Ceiling(kind="bandwidth", level=level, value=value * TERA, unit="byte/s")
        for level, value in BANDWIDTH.items()
    ]
    launch = [
        Ceiling(kind="launch", access=access, value=cost, unit="s")
        for access, cost in (("stream", 3.5e-6), ("graph node", 0.5e-6))
    ]
    return Machine(name="bench", basis="measured", ceilings=(*compute, *bandwidth, *launch))


def launches(kernels, seed=1):
    rng = random.Random(seed)
    now = 0.0
    for number in range(kernels):
        name = name_of(number, rng)
        bytes_dram = rng.lognormvariate(16, 2)
        moved = {
            "bytes_dram": bytes_dram,
            "bytes_l2": bytes_dram * rng.uniform(1, 4),
            "bytes_l1": bytes_dram * rng.uniform(2, 10),
            "bytes_shared": bytes_dram * rng.uniform(0, 20) if number % 2 else 0.0,
        }
        flop = dict.fromkeys(COMPUTE, 0.0)
        if number % 4 >= 2:
            flop["tensor bf16"] = bytes_dram * rng.lognormvariate(4, 1.5)
        if number % 3:
            flop["vector fp32"] = bytes_dram * rng.lognormvariate(-1, 1.5)
        floor = max(
            [amount / (BANDWIDTH[key[6:]] * TERA) for key, amount in moved.items()]
            + [amount / (COMPUTE[path] * TERA) for path, amount in flop.items()]
        )
        for _ in range(rng.choice((1, 1, 2, 4))):
            duration = (floor + 1e-6) * rng.uniform(1.1, 4)
            yield {
                "name": name,
                "kind": "kernel",
                "phase": "forward" if number % 2 else "backward",
                "stream": 7,
                "launch": 0,
                "start_s": now,
                "duration_s": duration,
                **moved,
                **{f"flop_{path.replace(' ', '_')}": work for path, work in flop.items()},
            }
            now += duration + rng.uniform(0, 2e-6)


def analysed(kernels, folder):
    rows = list(launches(kernels))
    listed = ", ".join(f"unnest(${place}) AS {name}" for place, name in enumerate(rows[0], start=1))
    path = folder / "large.parquet"
    with engine.connect() as connection:
        connection.execute(
            f"CREATE TABLE rows AS SELECT {listed}", [[row[key] for row in rows] for key in rows[0]]
        )
        write_run(connection, "SELECT * FROM rows", Provenance(collector="synthetic"), path)
    run = open_run(path)
    return run, analyze(run, machine())


def plotly_page(analysis, path):
    """Write the same points with the nearest peer; None without it."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        return None
    scene = roofline_scene(analysis)
    names = [kernel.short_name for kernel in analysis.kernels]
    figure = go.Figure()
    for level in scene.levels:
        points = [point for point in scene.points if point.level == level]
        figure.add_trace(
            go.Scattergl(
                x=[point.x for point in points],
                y=[point.y for point in points],
                mode="markers",
                name=level,
                text=[names[point.number - 1] for point in points],
                marker={"size": [point.area**0.5 for point in points], "symbol": "circle-open"},
            )
        )
    for roof in scene.roofs:
        xs, ys = zip(roof.start, roof.end, strict=True)
        figure.add_trace(go.Scattergl(x=xs, y=ys, mode="lines", name=roof.label))
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    figure.write_html(path, include_plotlyjs=True, config={"scrollZoom": True})
    return path


ZOOM = """async ([selector]) => {
  const target = document.querySelector(selector);
  const box = target.getBoundingClientRect();
  target.focus?.({preventScroll: true});
  const gaps = [];
  let last = performance.now();
  let going = true;
  const tick = (now) => {
    gaps.push(now - last);
    last = now;
    if (going) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  for (let step = 0; step < 10; step += 1) {
    target.dispatchEvent(new WheelEvent("wheel", {bubbles: true, cancelable: true, deltaY: -100,
      clientX: box.left + box.width / 2, clientY: box.top + box.height / 2}));
    await new Promise((done) => setTimeout(done, 60));
  }
  await new Promise((done) => setTimeout(done, 300));
  going = false;
  return Math.max(...gaps.slice(1));
}"""


def measured(browser, path, target):
    """Return first paint in s and the longest frame of ten wheel steps in ms."""
    tab = browser.new_page(viewport={"width": 1400, "height": 1000})
    started = time.perf_counter()
    tab.goto(path.as_uri())
    tab.wait_for_selector(target)
    loaded = time.perf_counter() - started
    paint = tab.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
    )
    tab.wait_for_timeout(1500)
    frame = tab.evaluate(ZOOM, [target])
    tab.close()
    return (paint or 0) / 1000, loaded, frame


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--kernels", type=int, default=20_000)
    arguments.add_argument("--browser", default="/usr/bin/chromium")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    from playwright.sync_api import sync_playwright

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        run, analysis = analysed(options.kernels, Path(folder))
        started = time.perf_counter()
        detail = read_detail(run, analysis)
        read = time.perf_counter()
        text = page_html(analysis, detail)
        made = time.perf_counter()
        own = Path(folder) / "page.html"
        own.write_text(text, encoding="utf-8")
        pages = {"mansard": (own, "html[data-ready] #roofline canvas + canvas")}
        peer = plotly_page(analysis, Path(folder) / "plotly.html")
        if peer:
            pages["plotly"] = (peer, ".nsewdrag")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=options.browser, args=["--no-sandbox", "--disable-gpu"]
            )
            for name, (path, target) in pages.items():
                runs = [measured(browser, path, target) for _ in range(REPEATS)]
                paint, loaded, frame = (
                    statistics.median(column) for column in zip(*runs, strict=True)
                )
                found[name] = {
                    "megabytes": path.stat().st_size / 1e6,
                    "first_paint_s": paint,
                    "charts_s": loaded,
                    "zoom_frame_ms": frame,
                }
            browser.close()
    found["mansard"] |= {"read_s": read - started, "made_s": made - read}
    if options.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{options.kernels} kernels, {analysis.totals.launches} launches")
    for name, figures in found.items():
        for key, value in figures.items():
            limit = f"   limit {LIMITS[key]:g}" if name == "mansard" and key in LIMITS else ""
            print(f"{name:<8} {key:<14} {value:8.3f}{limit}")


if __name__ == "__main__":
    main()
