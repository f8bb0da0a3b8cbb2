#!/usr/bin/env python3
"""Fits the parameters of matrix products (configs/devices/efficiency/*.yaml, `gemm`) to a table of
measured products, on one half of its rows, and prints them with the error on the other half.

    fit_gemm.py --device H100-SXM --table gemm.csv [--dtype bf16|fp8]

The table has columns dtype (bfloat16, fp8), m, n, k and time_us. The device's facts, its tiles and
the parameters to start from are read from the catalogue. The model is that of
sim/compute/internal/gemm_time.cc at full clocks; `sustained` is fitted apart, as the ratio of rows
measured in continuous use to this model. For fp8, only the rate is fitted, together with the cost
of the quantisation that is part of those rows and not of the parameters.

Needs numpy, scipy and PyYAML.
"""
import argparse
import csv
import pathlib

import numpy as np
import yaml
from scipy.optimize import minimize

CATALOGUE = pathlib.Path(__file__).resolve().parents[3] / "configs" / "devices"
UNITS = {"GB/s": 1e9, "TB/s": 1e12, "TFLOP/s": 1e12, "ns": 1e-9, "us": 1e-6}
FITTED = ["rate", "operand_rate", "tile_overhead", "floor", "streaming", "split_overhead",
          "split_traffic"]
NAME_OF = {"bf16": "bfloat16", "fp8": "fp8"}
SIZE_OF = {"bf16": 2, "fp8": 1}


def number(value):
    if isinstance(value, (int, float)):
        return float(value)
    count, unit = value.split()
    return float(count) * UNITS[unit]


def load_device(name):
    device = yaml.safe_load((CATALOGUE / f"{name}.yaml").read_text())
    file = CATALOGUE / "efficiency" / f"{device['efficiency']}.yaml"
    gemm = yaml.safe_load(file.read_text())["gemm"]
    return {
        "peak": {d: number(p["value"]) for d, p in device["tensor_peak"].items()},
        "bandwidth": number(device["memory_bandwidth"]["value"]),
        "multiprocessors": int(device["multiprocessors"]["value"]),
    }, gemm


def load_rows(path, dtype):
    with open(path, newline="", encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["dtype"] == NAME_OF[dtype]]
    table = np.array([[float(r[c]) for c in ("m", "n", "k", "time_us")] for r in rows])
    table[:, 3] *= 1e-6
    return table[flops(table) >= 1e8]


def flops(rows):
    return 2 * rows[:, 0] * rows[:, 1] * rows[:, 2]


def predict(x, rows, dtype, device, gemm):
    p = dict(zip(FITTED, x))
    m, n, k = rows[:, 0], rows[:, 1], rows[:, 2]
    size, count = SIZE_OF[dtype], device["multiprocessors"]
    rate = device["peak"][dtype] * p["rate"] / count
    bandwidth = device["bandwidth"] * p["streaming"]
    once = ((m * k + k * n) * size + m * n * 2) / bandwidth
    best = np.full(len(m), np.inf)
    for tile in gemm["tiles"]:
        tm, tn = tile["m"], tile["n"]
        for split in gemm["splits"]:
            waves = np.ceil(np.ceil(m / tm) * np.ceil(n / tn) * split / count)
            depth = np.ceil(np.ceil(k / split) / gemm["k_step"]) * gemm["k_step"]
            operands = (np.minimum(tm, m) + np.minimum(tn, n)) * depth * size
            compute = waves * (p["tile_overhead"] +
                               np.maximum(2 * tm * tn * depth / rate, operands / p["operand_rate"]))
            memory = once
            if split > 1:
                compute = compute + p["split_overhead"]
                memory = once + p["split_traffic"] * 2 * split * m * n * 4 / bandwidth
            time = np.maximum(compute, memory)
            if split > 1:
                time = np.where(k < split * gemm["smallest_part"], np.inf, time)
            best = np.minimum(best, time)
    return best + p["floor"]


def search(cost, start, rounds):
    """Nelder-Mead over the logarithms: all parameters are positive."""
    z = np.zeros(len(start))
    for i in range(rounds):
        step = 0.12 * (-1) ** i
        simplex = np.vstack([z] + [z + step * e for e in np.eye(len(z))])
        z = minimize(lambda z: cost(start * np.exp(z)), z, method="Nelder-Mead",
                     options={"maxfev": 20 * len(z), "initial_simplex": simplex}).x
    return start * np.exp(z)


def report(predicted, rows):
    error = predicted / rows[:, 3] - 1
    for least in (1e9, 1e10, 1e11, 1e12):
        part = error[flops(rows) >= least]
        if len(part):
            median, p90 = np.percentile(np.abs(part), [50, 90])
            print(f"  >= {least:g} FLOP: {len(part)} rows kept out, median {median:.1%}, "
                  f"p90 {p90:.1%}, bias {np.median(part):+.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--dtype", choices=NAME_OF, default="bf16")
    args = parser.parse_args()

    device, gemm = load_device(args.device)
    rows = load_rows(args.table, args.dtype)
    chosen = np.random.default_rng(1).random(len(rows)) < 0.5
    train, test = rows[chosen], rows[~chosen]
    # Large products are few and matter most.
    weight = np.select([flops(train) >= 1e11, flops(train) >= 1e9], [3, 1], 0.3)

    def misfit(predicted):
        log = np.log(predicted / train[:, 3])
        return np.average(np.sqrt(log * log + 1e-4), weights=weight)

    start = np.array([number(gemm[name]) for name in FITTED])
    if args.dtype == "bf16":
        legal = lambda x: x[0] <= 1 and x[4] <= 1
        x = search(lambda x: misfit(predict(x, train, "bf16", device, gemm)) if legal(x) else 9,
                   start, 3)
        for name, value in zip(FITTED, x):
            print(f"{name}: {value:.4g}")
        report(predict(x, test, "bf16", device, gemm), test)
    else:
        # rate, seconds of the quantisation kernels, share of the bandwidth that they reach
        def with_quantisation(y, table):
            x = start.copy()
            x[0] = y[0]
            moved = table[:, 0] * table[:, 2] * 3
            return (predict(x, table, "fp8", device, gemm) + y[1] +
                    moved / (device["bandwidth"] * y[2]))
        y = search(lambda y: misfit(with_quantisation(y, train)) if y[0] <= 1 else 9,
                   np.array([gemm["rate"], 5e-6, 0.5]), 2)
        print(f"rate_of fp8: {y[0]:.4g} (quantisation: {y[1]:.3g} s, {y[2]:.2f} of the bandwidth)")
        report(with_quantisation(y, test), test)


if __name__ == "__main__":
    main()
