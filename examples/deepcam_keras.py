"""Trains DeepLabv3+ on generated climate images, in Keras 3 on the backend of your choice.

    KERAS_BACKEND=jax python examples/deepcam_keras.py --steps 20

It is an ordinary training script: nothing in it takes a profile. Three ways to take one:

    mansard profile --with ncu -- python examples/deepcam_keras.py --steps 8

    KERAS_BACKEND=jax mansard profile -o run.parquet --phases own \
        --iterations-by 'call mansard.workloads.keras.training:Training.step' \
        examples/deepcam_keras.py --steps 40

    KERAS_BACKEND=torch mansard profile -o run.parquet --phases own \
        --iterations-by 'call mansard.workloads.keras.training:Training.step' \
        examples/deepcam_keras.py --steps 40
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from mansard.errors import MansardError, UsageError
from mansard.workloads import Configuration, preset_size
from mansard.workloads.keras import prepare
from mansard.workloads.keras.refusal import EXECUTIONS


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", choices=("paper", "tiny"), default="paper")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", default="amp-bf16", help="fp32, tf32, amp-fp16, amp-bf16")
    parser.add_argument("--layout", default="nhwc", help="nhwc or nchw")
    parser.add_argument("--execution", help="xla, graph or eager; by the backend if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--load-weights", type=Path, metavar="FILE.npz")
    parser.add_argument("--save-weights", type=Path, metavar="FILE.npz", help="as they start")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def main() -> None:
    """Train, and print the loss and the time of each step."""
    options = read_options()
    framework = "keras-" + os.environ.get("KERAS_BACKEND", "tensorflow")
    if framework not in EXECUTIONS:
        raise UsageError(f"KERAS_BACKEND is none of {', '.join(EXECUTIONS)}, each without keras-")
    configuration = Configuration(
        model="deeplab-resnet50",
        framework=framework,
        precision=options.precision,
        layout=options.layout,
        optimizer="keras-adam",
        execution=options.execution or EXECUTIONS[framework][0],
        size=preset_size("deeplab-resnet50", options.size),
        device=options.device,
        seed=options.seed,
    )
    prepare(configuration)
    # Keras must have its backend before these are imported.
    from mansard.workloads.keras import training, weights  # noqa: PLC0415

    task = training.make_training(configuration)
    if options.load_weights:
        weights.load(task.network, options.load_weights)
    if options.save_weights:
        weights.save(task.network, options.save_weights)

    losses, seconds = [], []
    for step in range(options.steps):
        began = time.perf_counter()
        task.step()
        losses.append(task.loss())
        seconds.append(time.perf_counter() - began)
        if not options.json:
            print(f"step {step + 1}: loss {losses[-1]:.4f}, {seconds[-1]:.3f} s")
    if options.json:
        workload = training.as_workload(task)
        flop = [[each.phase, each.kind, each.flop] for each in workload.flop]
        print(
            json.dumps(
                {
                    "name": configuration.name,
                    "parameters": workload.parameters,
                    "flop": flop,
                    "losses": losses,
                    "seconds": seconds,
                }
            )
        )


if __name__ == "__main__":
    try:
        main()
    except MansardError as error:
        sys.exit(f"error: {error}")
