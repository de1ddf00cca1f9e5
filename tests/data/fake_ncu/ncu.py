"""A stand-in for Nsight Compute's command line; README.md says what it can do."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MODE = os.environ.get("FAKE_NCU", "ok")
FLAGS = {"--nvtx", "--force-overwrite", "--disable-extra-suffixes"}
OPTIONS = """
  -h [ --help ]   -v [ --version ]   --mode arg (=launch-and-attach)
  --config-file arg (=1)   --config-file-path arg   --check-exit-code arg (=1)
  --forward-signals   --nvtx   --target-processes arg (=all)   --null-stdin
  --nvtx-push-pop-scope arg (=thread)
  --devices arg   --filter-mode arg (=global)   --kernel-id arg   -k [ --kernel-name ] arg
  --kernel-name-base arg (=function)   -c [ --launch-count ] arg   -s [ --launch-skip ] arg
  --replay-mode arg (=kernel)   --app-replay-buffer arg (=file)
  --graph-profiling arg (=node)   --metrics arg   --disable-extra-suffixes   --chips arg
  --query-metrics   --profile-from-start arg (=1)   --cache-control arg (=all)
  --clock-control arg (=base)   --nvtx-include arg   --nvtx-exclude arg   --import-sass arg (=1)
  --log-file arg   -o [ --export ] arg   -f [ --force-overwrite ]   --preload-library arg
"""
NEW = (
    "preload-library",
    "filter-mode",
    "graph-profiling",
    "import-sass",
    "nvtx-push-pop-scope",
    "query-metrics",
)
KERNELS = ("nvjet_sm90_tst_256x128_64x4_1x...", "vectorized_elementwise_kernel") * 2


def split(arguments):
    """Options as a dictionary, and the program."""
    found, rest = {}, list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        found[option] = None if option in FLAGS else rest.pop(0)
    return found, rest


def answer(arguments):
    if MODE == "silent":
        print("no Nsight Compute installation found")
        sys.exit(1)
    version = "2022.1.1.0" if MODE == "old" else "2025.3.1.0"
    if arguments == ["--version"]:
        print("NVIDIA (R) Nsight Compute Command Line Profiler")
        print("Copyright (c) 2018-2025 NVIDIA Corporation")
        print(f"Version {version} (build 36398880) (public-release)")
    elif arguments == ["--help"]:
        text = OPTIONS
        for option in NEW if MODE == "old" else ():
            text = text.replace(f"--{option}", "")
        print(text)
    elif arguments[0] == "--query-metrics":
        print(f"Device {arguments[-1].upper()}\n---------------- --------- -----")
        for name in os.environ.get("FAKE_NCU_METRICS", "").split():
            print(f"{name:60} Counter   byte  # of things")
    else:
        return
    sys.exit(0)


class Log:
    def __init__(self, path):
        self.path = Path(path)
        self.path.write_text("")

    def say(self, text, end="\n"):
        with self.path.open("a") as file:
            file.write(text + end)


def profile(log, name, number, pause=0.0):
    log.say(f'==PROF== Profiling "{name}" - {number}: 0%', end="")
    for share in ("....50%", "....100%"):
        time.sleep(pause)
        log.say(share, end="")
    log.say(" - 8 passes")


def write_report(options, part=1.0):
    data = gzip.decompress(Path(os.environ["FAKE_NCU_REPORT"]).read_bytes())
    path = Path(options["--export"].replace("%%", "%"))
    path.write_bytes(data[: int(len(data) * part)])
    return path


def refuse(log, child, *lines):
    for line in lines:
        log.say(line)
    log.say("==PROF== Trying to shutdown target application")
    child.kill()
    child.wait()
    log.say("==ERROR== The application returned an error code (9).")
    sys.exit(9)


def main():
    arguments = sys.argv[1:]
    answer(arguments)
    if MODE == "bad-option":
        print("==ERROR== unrecognised option '--export'. Use --help for further details.")
        sys.exit(1)
    options, program = split(arguments)
    if "FAKE_NCU_SEEN" in os.environ:
        Path(os.environ["FAKE_NCU_SEEN"]).write_text("\0".join(sys.argv[1:]))
    log = Log(options["--log-file"])
    log.say(
        "==WARNING== Note: Running with uncontrolled GPU caches. Profiling results may be inconsistent."
    )
    if MODE == "refuse" and "__sass_" in options["--metrics"]:
        refused = next(name for name in options["--metrics"].split(",") if "__sass_" in name)
        log.say(f"==ERROR== Metric {refused} is not supported in range replay.")
        log.say(
            "==ERROR== See https://docs.nvidia.com/nsight-compute/ProfilingGuide/#compatibility"
        )
        sys.exit(1)
    stop = []
    signal.signal(signal.SIGINT, lambda number, frame: stop.append(number))
    child = subprocess.Popen(program)
    log.say(f"==PROF== Connected to process {child.pid} ({program[0]})")
    if MODE == "permission":
        refuse(
            log,
            child,
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
            "Performance Counters on the target device 0.",
        )
    later = "-2." in options["--export"]
    if MODE == "busy" or (MODE == "busy-later" and later):
        refuse(
            log,
            child,
            "==ERROR== An error was reported by the driver",
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no "
            "other tool (like DCGM) is concurrently collecting profiling data.",
        )
    if MODE == "slow":
        number = 0
        while not stop and number < 400:
            profile(log, "kernel", number, 0.05)
            number += 1
        log.say('==PROF== Profiling "kernel" - 99: 0%..==PROF== Received signal')
        log.say("==PROF== Trying to shutdown target application")
        child.terminate()
        child.wait()
        log.say("==ERROR== The application returned an error code (15).")
        log.say(f"==PROF== Report: {write_report(options)}")
        sys.exit(15)
    code = child.wait()
    if MODE == "harmed" and "--preload-library" in options:
        log.say("==ERROR== The application returned an error code (11).")
        sys.exit(11)
    nothing = MODE == "no-kernels" or (MODE == "deaf" and "--preload-library" in options)
    counted = () if nothing else KERNELS[:2] if MODE == "crash" else KERNELS
    for number, name in enumerate(counted):
        profile(log, name, number)
    if MODE == "crash":
        write_report(options, float(os.environ.get("FAKE_NCU_PART", "0.5")))
        os.kill(os.getpid(), signal.SIGSEGV)
    log.say(f"==PROF== Disconnected from process {child.pid}")
    if MODE == "disk-full":
        write_report(options, 0.3)
        log.say("==ERROR== Failed to write the report: No space left on device")
        sys.exit(1)
    if code:
        log.say(f"==ERROR== The application returned an error code ({abs(code)}).")
    if nothing:
        log.say("==WARNING== No kernels were profiled.")
    else:
        log.say(f"==PROF== Report: {write_report(options)}")
    sys.exit(abs(code))


main()
