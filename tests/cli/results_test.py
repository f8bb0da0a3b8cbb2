#!/usr/bin/env python3
"""Holds what the commands write as JSON to `foreshard schema RESULT`, both ways: a result has no key
that is not described, and every key that is described stands in some result.

    results_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SMALL = "gpt-1.7b-a100-8"
GOLDEN = SOURCE / "tests/golden/report"
# Described keys that no result below has, and why.
UNSEEN = {
    "measurement": {
        # readings of GPUs
        "clock_mhz", "memory_clock_mhz", "celsius", "watts", "throttle", "during", "samples", "low",
        "median", "high",
        "slack_s",  # of one rank alone
        "timing", "events", "step_s", "event_s",  # of GPUs
        "gemms", "count", "tried", "taken_s", "fastest_s",  # likewise
    },
    # of strategies with something on the hosts, which results of searches have
    "replan": {"offload_activation_layers", "offload_optimizer", "offload_parameters"},
    "graph_search": {"partial", "option", "value"},  # of a study's own annotations; no options
    # tests/strategies/program_ir has them.
    "program": {"device_of_rank", "launch_times_s", "roots", "transfers", "matrix_units"},
}


def foreshard(*arguments, codes=(0,)):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in codes, f"foreshard {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def result(*arguments, codes=(0,)):
    return json.loads(foreshard(*arguments, codes=codes))


def described(schema):
    """All names of properties, wherever they stand."""
    names = set()
    if isinstance(schema, dict):
        names |= set(schema.get("properties", {}))
        for part in schema.values():
            names |= described(part)
    elif isinstance(schema, list):
        for part in schema:
            names |= described(part)
    return names


def written(value):
    if isinstance(value, dict):
        return set(value).union(*(written(one) for one in value.values()))
    return set().union(*(written(one) for one in value)) if isinstance(value, list) else set()


class Results(unittest.TestCase):
    def hold(self, name, *results):
        schema = result("schema", name)
        short = schema["title"].split(".")[1].split("/")[0]
        validator = jsonschema.Draft7Validator(schema)
        validator.check_schema(schema)
        for one in results:
            faults = [f"{'/'.join(map(str, fault.absolute_path))}: {fault.message[:300]}"
                      for fault in validator.iter_errors(one)]
            self.assertEqual(faults, [], name)
        self.assertEqual(described(schema) - written(list(results)), UNSEEN.get(short, set()),
                         f"{name}: described by `foreshard schema`, but in no result")

    def bundled(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.fsr"
            foreshard("simulate", SMALL, "--bundle", path)
            return json.loads(gzip.decompress(path.read_bytes()))

    def test_prediction(self):
        slow = "{stragglers: [{devices: node0/gpu1, speed: 0.9}]}"
        lost = "{failures: [{device: node0/gpu1, at: 100 ms, then: fail}]}"
        self.hold(
            "prediction",
            result("simulate", SMALL, "--format", "json", "--timing", "--set", "train=1B tokens"),
            result("simulate", SMALL, "--format", "json", "--sensitivity"),
            result("simulate", "--cluster", "two-dgx-a100", "--model", "gpt-7.5b", "--strategy",
                   "{data_parallel: 16, global_batch: 16}", "--format", "json", codes=(3,)),
            result("simulate", SMALL, "--format", "json", "--set", f"disturbances={slow}"),
            result("simulate", "host-dp2", "--format", "json"),
            self.drawn(),
            self.measured(),
            self.bundled(),
            result("simulate", "--cluster", "two-dgx-h100", "--model", "mixtral-8x7b", "--strategy",
                   "{tensor_parallel: 2, expert_parallel: 4, data_parallel: 8, global_batch: 8,"
                   " zero_stage: 1, expert_load: {zipf: 0.6, draws: 2}}", "--format", "json",
                   codes=(0, 3)),
            result("simulate", SMALL, "--format", "json", "--set", f"disturbances={lost}",
                   codes=(3,)),
            json.loads((GOLDEN / "example.json").read_text()))

    def measured(self):
        with tempfile.TemporaryDirectory() as folder:
            times = pathlib.Path(folder) / "ops.csv"
            times.write_text("operation,bytes,ranks,time_us\nall_gather,1 B,3,5\n")
            return result("simulate", SMALL, "--measured", str(times), "--format", "json")

    def drawn(self):
        body = ("{{name: {0}, tensors: [{{name: {0}.x, role: input, dtype: bf16, shape: [64, 64]}}], "
                "operators: [{{op: unary, name: {0}.act, inputs: [{0}.x], settings: {{operation: {0}}}}}], "
                "outputs: [{0}.act]}}")
        with tempfile.TemporaryDirectory() as folder:
            graph = pathlib.Path(folder) / "graph.yaml"
            graph.write_text("name: branches\ntensors:\n"
                             "  - {name: x, role: input, dtype: bf16, shape: [64, 64]}\noperators:\n"
                             "  - {op: condition, name: c, inputs: [x], settings: {probability: 0.5},"
                             " bodies: [" + body.format("relu") + ", " + body.format("gelu") +
                             "]}\noutputs: [c]\n")
            study = pathlib.Path(folder) / "study.yaml"
            study.write_text(f"cluster: two-dgx-a100\ngraph: {{file: {graph}}}\n"
                             "strategy: {mode: forward, micro_batch: 64, global_batch: 64}\n")
            return result("simulate", study, "--draws", "3", "--format", "json")

    def test_side_by_side(self):
        self.hold(
            "side_by_side",
            result("compare", SMALL, "--set-b", "cluster.node.nvlink.bandwidth=100 GB/s",
                   "--break-even", "cluster.rent=1..10 USD/h", "--by", "usd", "--format", "json"),
            result("compare", SMALL, SMALL, "--break-even",
                   "cluster.node.nvlink.bandwidth=1..2 GB/s", "--format", "json"),
            result("compare", SMALL, "--set-b", "strategy.zero_stage=1", "--format", "json"))

    def test_search(self):
        space = ("search", SMALL, "--format", "json", "--top", "2", "--simulate", "2",
                 "--certify", "0", "--why-not", "mb1")
        with tempfile.TemporaryDirectory() as folder:
            devices_alone = pathlib.Path(folder) / "space.yaml"
            devices_alone.write_text("offload: false\n")
            sharded = pathlib.Path(folder) / "sharded.yaml"  # which Megatron has no option for
            sharded.write_text("zero_stage: [3]\npipeline_parallel: [1]\n")
            self.hold("foreshard.search/1", result(*space),
                      result(*space, "--set", "model.layers=960", "--space", devices_alone,
                             codes=(0, 3)),
                      result(*space, "--space", sharded, "--set", "strategy.framework=megatron-lm"),
                      result(*space, "--set", "strategy.offload_optimizer=cpu"))

    def test_explanation(self):
        with tempfile.TemporaryDirectory() as folder:
            found = pathlib.Path(folder) / "found.json"
            foreshard("search", SMALL, "--format", "json", "--level", "0", "--simulate", "2",
                      "--certify", "0", "-o", found)
            self.hold("explanation", result("explain", found, "--why-not", "mb1", "--format", "json"),
                      result("explain", found, "--format", "json"))

    def test_sweep(self):
        with tempfile.TemporaryDirectory() as folder:
            sweep = pathlib.Path(folder) / "sweep.yaml"
            layers = f"study: {SMALL}\naxes: [{{key: model.layers, values: [24, 480]}}"
            axes = layers + ", {key: strategy.micro_batch, values: [1, 3]}]\n"
            sweep.write_text(axes + "goal: {train: 1B tokens, within: 1 h, budget: 1e9 USD}\n")
            run = ("study", sweep, "--format", "json")
            simulated = result(*run, codes=(0, 3))
            sweep.write_text(layers + "]\nsearch: {space: {level: 1}, simulate: 1, certify: 0}\n")
            searched = result(*run, codes=(0, 3))
            # Where electricity is dear the site that needs less of it is the cheaper one.
            sweep.write_text(
                f"study: {SMALL}\nrank: usd\ntrain: 1B tokens\nsensitivities: true\naxes:\n"
                "  - {key: cluster.electricity, values: [0.01 USD/kWh, 10 USD/kWh]}\n"
                "  - name: site\n    choices:\n"
                "      - {name: far, set: {cluster.pue: 3, cluster.rent: 1 USD/h}}\n"
                "      - {name: near, set: {cluster.pue: 1, cluster.rent: 2 USD/h}}\n")
            sites = result(*run)
            self.assertEqual([(one["first"], one["then"]) for one in sites["break_even"]], [("far", "near")])
            self.hold("foreshard.sweep/1", simulated, searched, sites)
            paths = [pathlib.Path(folder) / name for name in ("a.json", "b.json")]
            for path, one in zip(paths, (simulated, searched)):
                path.write_text(json.dumps(one))
            self.hold("sweep_comparison", result("compare", *paths, "--format", "json"))

    def test_advice(self):
        self.hold("advice", result("advise", SMALL, "--format", "json"),
                  result("advise", SMALL, "--top", "1", "--format", "json"))

    def test_replan(self):
        change = ("replan", SMALL, "--set", "cluster.nodes=2", "--set",
                  "cluster.fabric={kind: single-switch}", "--level", "0", "--simulate", "1", "--certify", "0",
                  "--format", "json")
        self.hold("replan", result(*change, "--down", "node1"),
                  result(*change, "--set-after", "cluster.nodes=3", "--keep"))

    def test_elastic(self):
        with tempfile.TemporaryDirectory() as folder:
            line = pathlib.Path(folder) / "line.yaml"
            line.write_text(
                f"study: {SMALL}\nset: {{cluster.nodes: 2, cluster.fabric: {{kind: single-switch}},"
                " strategy.data_parallel: 4}\ntrain: 1B tokens\ndetection: 1 min\nrestart: 1 min\n"
                "failures: {causes: [{name: node, of: node, mtbf: 20 min, repair: 10 min}, {name: rack}]}\n"
                "checkpoint: {storage: 10 GB/s}\npolicies: [wait]\nhistories: 3\n")
            self.hold("foreshard.elastic/1", result("elastic", line, "--format", "json"))

    def test_graph_search(self):
        self.hold("graph_search", result("search", "moe-layer-h100-8", "--format", "json",
                                         "--simulate", "8"))

    def test_topology(self):
        show = ("topology", "show", "two-dgx-a100", "--format", "json")
        self.hold("topology", result(*show), result(*show, "--set", "down=[node1/gpu7]"))

    def test_catalog(self):
        self.hold("catalog", result("catalog", "--format", "json"))
        self.hold("operators", result("catalog", "operators", "--format", "json"))
        self.hold("schedules", result("catalog", "schedules", "--format", "json"))

    def test_findings(self):
        check = ("topology", "check", "two-dgx-h100", "--format", "json")
        self.hold("findings", result(*check), result(*check, "--set", "fabric.latency=2 ms"))

    def test_collectives(self):
        sweep = ("topology", "collectives", "two-dgx-h100", "--op", "all_reduce", "--ranks", "0-15",
                 "--format", "json")
        broken = ("topology", "collectives", "two-dgx-h100", "--set", "down=[node1/gpu7]",
                  "--sizes", "1MiB", "--format", "json")
        self.hold("collectives", result(*sweep), result(*sweep, "--all"), result(*broken))

    def test_reshard(self):
        self.hold("reshard", result(
            "reshard", "--tensor", "bf16[8192,8192]", "--from", "x=16 [x, -]", "--to", "x=16 [-, x]",
            "--cluster", "two-dgx-h100", "--format", "json"))

    def test_reshard_strategy(self):
        before = "{data_parallel: 4, tensor_parallel: 2, global_batch: 8}"
        after = "{data_parallel: 8, global_batch: 8}"
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in (("before", before), ("after", after)):
                paths.append(pathlib.Path(folder) / f"{name}.yaml")
                paths[-1].write_text(text)
            self.hold("reshard_strategy", result(
                "reshard", "--from-strategy", paths[0], "--to-strategy", paths[1], "--model",
                "gpt-1.7b", "--cluster", "two-dgx-a100", "--format", "json"))

    def test_reshard_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "before"
            source.mkdir()
            header = json.dumps({"w": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}})
            header = header.encode().ljust(80)
            (source / "model.safetensors").write_bytes(
                len(header).to_bytes(8, "little") + header + bytes(32))
            self.hold("reshard_checkpoint", result(
                "reshard", "--checkpoint", source, "--out", pathlib.Path(folder) / "after", "--to",
                "x=2 [x, -]", "--format", "json"))

    def test_version(self):
        self.hold("version", result("version", "--format", "json"))

    def test_program_and_arrivals(self):
        self.hold("program", *(result("export", study, "--program", "-")
                               for study in ("host-dp2", "gpt-39.1b-a100-64", "llama3-8b-h100-64-fsdp")),
                  result("export", "llama3-8b-h100-8-fp8", "--set", "strategy.quantization=fp8-block", "--set",
                         "strategy.optimizer={first_moment: bf16}", "--program", "-"),
                  result("export", "deepseek-v3-h800-2048", "--program", "-"),
                  result("export", "mixtral-8x22b-h100-128", "--set", "model.window=1024", "--set", "model.samples={lengths: [512], shares: [1]}",
                         "--program", "-"))
        self.hold("arrivals", result("export", "host-dp2", "--arrivals", "-", "--rank", "1"))

    def test_measurement_comparison_and_validation(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            foreshard("validate", "host-dp2", "--host", "--no-calibrate", "--repeats", "1", "-o", out)
            self.hold("validation", json.loads((out / "validation.json").read_text()))
            measured = next(out.rglob("measurement.json"))
            self.hold("measurement", json.loads(measured.read_text()))
            whole = result("compare", "host-dp2", measured, "--format", "json")
            alone = out / "alone.json"
            foreshard("replay", "host-dp2", "--host", "--as-rank", "1", "--repeats", "1", "-o", alone)
            self.hold("comparison", whole, result("compare", "host-dp2", alone, "--format", "json"))

    def test_accuracy(self):
        tables = {
            "training": "id,source,framework,gpu,num_gpus,gpus_per_node,model_name,layers,hidden,heads,"
                        "kv_heads,ffn,vocab,seq,experts,topk,tp,pp,vpp,cp,dp,ep,zero_stage,mbs,gbs,"
                        "recompute,seq_parallel,precision,metric,value,unit,notes\n"
                        "A,x@1,Megatron-LM,A100-SXM-80GB,8,8,small,8,1024,16,16,4096,50304,1024,,,1,1,1,"
                        "1,8,1,0,1,8,none,False,bf16,samples/s,100,samples/s (global),\n",
            "products": "source,gpu,kernel_source,dtype,m,n,k,time_us\n"
                        "x@1:y,H100-SXM5-80GB,k,bfloat16,4096,4096,4096,190\n",
            "collectives": "id,source,machine,gpu,num_gpus,nodes,gpus_per_node,intra_link,inter_net,"
                           "nccl_version,op,dtype,bytes,time_us,algbw_gbs,busbw_gbs,algo_hint,notes\n"
                           "C,src@1:a/b,HGX,H100-SXM5-80GB,8,1,8,,,2,all_reduce,float,536870912,2110,,,,\n",
        }
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / f"{name}.csv" for name in tables]
            for path in paths:
                path.write_text(tables[path.stem])
            whole = result("accuracy", *paths, "--format", "json")
            header, row = tables["training"].splitlines()
            group = pathlib.Path(folder) / "group.csv"
            group.write_text("\n".join([header] + [
                row.replace("1,1,1,1,8,1,0,1,8", f"{t},1,1,1,{8 // t},1,{zero},1,8")
                for t, zero in ((1, 0), (1, 1), (2, 0), (2, 1), (4, 1))]) + "\n")
            self.hold("accuracy", whole, result("accuracy", group, "--regret", "--format", "json"))

    def test_shipped_files_obey_the_schemas_that_editors_read(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not here")
        folders = {"study": "studies", "cluster": "clusters", "node": "nodes", "device": "devices", "model": "models",
                   "strategy": "strategies", "sweep": "sweeps", "elastic": "elastic"}
        for kind, folder in folders.items():
            validator = jsonschema.Draft7Validator(result("schema", kind))
            for file in sorted((SOURCE / "configs" / folder).glob("*.yaml")):
                faults = [one.message[:200] for one in validator.iter_errors(yaml.safe_load(file.read_text()))]
                self.assertEqual(faults, [], file)
            self.assertFalse(validator.is_valid({"no_such_key": 1}), kind)

    def test_every_result_has_a_test(self):
        told = re.search(r"foreshard\.search/1:([^.]*)\.", foreshard("schema", "--help"))[1]
        names = set(re.findall(r"\w+", told))
        text = pathlib.Path(__file__).read_text()
        self.assertEqual({name for name in names if f'"{name}' not in text and
                          f"foreshard.{name}/1" not in text}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
