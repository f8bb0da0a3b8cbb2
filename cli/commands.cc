#include "cli/commands.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <utility>

#include "cli/declaration.h"

namespace foreshard::cli {

std::span<const CommandInfo> commands() {
  static constexpr std::array<CommandInfo, 25> kCommands{{
      {"simulate", "Predict a training step: its time, its memory, and where both go.",
       "foreshard simulate configs/studies/gpt3-175b-a100-1024.yaml\n"
       "foreshard simulate study.yaml --set strategy.tensor_parallel=4 --format json\n"
       "foreshard simulate --cluster gpt3-a100-1024 --model gpt3-175b \\\n"
       "    --strategy gpt3-175b-1024",
       make_simulate},
      {"init", "Write a first study, from four questions.",
       "foreshard init -o study.yaml\n"
       "foreshard init --model llama3-70b --cluster dgx-h100 --gpus 64 --batch \"4M tokens\" \\\n"
       "    -o study.yaml",
       make_init},
      {"advise", "Say which single changes make a step faster, each simulated.",
       "foreshard advise configs/studies/gpt3-175b-a100-1024.yaml\n"
       "foreshard advise study.yaml --set strategy.micro_batch=2 --top 5 --format json",
       make_advise},
      {"search", "Find the fastest strategy that fits.",
       "foreshard search configs/studies/gpt3-175b-a100-1024.yaml --top 10", make_search},
      {"explain", "Say why a search chose what it chose, from its result.",
       "foreshard search study.yaml --format json -o found.json\n"
       "foreshard explain found.json\n"
       "foreshard explain found.json --why-not \"tp8 pp4 zero1\"",
       make_explain},
      {"plot", "Draw a result as an SVG picture.",
       "foreshard simulate study.yaml --format json -o step.json\n"
       "foreshard plot step.json -o step.svg\n"
       "foreshard plot step.json --kind memory -o memory.svg\n"
       "foreshard plot gpt3-175b-a100-1024 --kind passes -o passes.svg",
       make_plot},
      {"report", "Make one page of results, with pictures and a time line, for a browser.",
       "foreshard report gpt3-175b-a100-1024 -o report.html\n"
       "foreshard simulate study.yaml --bundle step.fsr\n"
       "foreshard search study.yaml --format json -o found.json\n"
       "foreshard report step.fsr found.json -o report.html",
       make_report},
      {"serve", "Show a study in a browser, with controls that change it.",
       "foreshard serve gpt3-175b-a100-1024\n"
       "foreshard serve study.yaml --port 8080",
       make_serve},
      {"study", "Compare a grid of clusters, models and strategies: time, money, energy.",
       "foreshard study configs/sweeps/adapters-70b.yaml --results adapters.db\n"
       "foreshard study sweep.yaml --results sweep.db --format csv -o sweep.csv\n"
       "foreshard study merge 1.db 2.db -o all.db\n"
       "foreshard study export all.db --format json",
       make_study},
      {"reshard", "Plan how tensors move from one layout to another, and explain the plan.",
       "foreshard reshard --tensor \"bf16[8192,53248]\" --from \"x=16 [x, -]\" \\\n"
       "    --to \"x=16 [-, x]\" --cluster two-dgx-h100\n"
       "foreshard reshard --tensor \"bf16[8192,8192]\" --from \"tp=8 @0-7 [-, tp]\" \\\n"
       "    --to \"tp=4 @8-11 [tp, -]\" --cluster two-dgx-h100 --program move.json\n"
       "foreshard reshard --from-strategy before.yaml --to-strategy after.yaml \\\n"
       "    --model gpt3-175b --cluster gpt3-a100-1024 --down 15\n"
       "foreshard reshard --checkpoint step-8000 --out step-8000-after \\\n"
       "    --to-strategy after.yaml --model gpt3-175b",
       make_reshard},
      {"replan", "When devices fail, go or come: the new strategy, and what the change takes.",
       "foreshard replan llama2-70b-h100-128 --down node3 --detection 5min --restart 5min \\\n"
       "    --storage '100 GB/s'\n"
       "foreshard replan before.yaml after.yaml --keep",
       make_replan},
      {"elastic", "What a run on a machine that fails comes to, by what is done about it.",
       "foreshard elastic llama2-70b-h100-128\n"
       "foreshard elastic run.yaml --format json",
       make_elastic},
      {"check", "Read a file and print what was understood, defaults included.",
       "foreshard check study.yaml\n"
       "foreshard check my-cluster.yaml --kind cluster",
       make_check},
      {"topology", "Show, check and import clusters.",
       "foreshard topology show gpt3-a100-1024\n"
       "foreshard topology show my-cluster.yaml --format dot | dot -Tsvg > cluster.svg\n"
       "foreshard topology collectives two-dgx-h100 --op all_reduce --ranks 0-15",
       make_topology},
      {"catalog", "List the devices, nodes, clusters, models ... that files may refer to.",
       "foreshard catalog\n"
       "foreshard catalog models\n"
       "foreshard catalog show H100-SXM",
       make_catalog},
      {"accuracy", "Score the simulator on tables of measurements.",
       "foreshard accuracy measurements.csv --format json", make_accuracy},
      {"replay", "Run a strategy's Program on real GPUs or processors, and measure it.",
       "foreshard replay configs/studies/host-dp2.yaml --host --verify -o measured.json\n"
       "foreshard replay study.yaml --launch \"srun -n 16\" -o measured.json\n"
       "foreshard replay step.json --host --verify",
       make_replay},
      {"compare",
       "Compare a prediction with the measurement of a replay, task by task, or two predictions.",
       "foreshard compare study.yaml measured.json\n"
       "foreshard compare study.yaml other.yaml --break-even 'cluster.rent=1..5 USD/h' --by usd\n"
       "foreshard compare a100.db h100.db\n"
       "foreshard compare study.yaml measured.json --max-error 15% --trace both.json",
       make_compare},
      {"validate", "Predict, replay, compare, calibrate, predict again, and report.",
       "foreshard validate configs/studies/host-dp2.yaml --host -o out\n"
       "foreshard validate study.yaml others.yaml --launch \"mpirun -n 8\" --max-error 15% -o out",
       make_validate},
      {"calibrate", "Fit the simulator's numbers to measurements.",
       "foreshard calibrate --plan study.yaml -o micro.json\n"
       "foreshard calibrate study.yaml --program micro.json --measurement measured.json -o my/\n"
       "foreshard calibrate --collectives measured.csv -o my-nccl.yaml\n"
       "foreshard calibrate --collectives measured.csv --cross-validate",
       make_calibrate},
      {"export", "Write the Program of a step, or its strategy as other frameworks have it.",
       "foreshard export study.yaml --program step.json\n"
       "foreshard export study.yaml --arrivals rank5.json --rank 5\n"
       "foreshard export study.yaml --as megatron",
       make_export},
      {"import", "Turn another framework's configuration of a run into a strategy.",
       "foreshard import pretrain.sh --devices 64 -o strategy.yaml\n"
       "foreshard import llama3_70b.toml --cluster two-dgx-h100 --part study -o study.yaml\n"
       "foreshard import accelerate.yaml --set strategy.micro_batch=2 \\\n"
       "    --set strategy.global_batch=64",
       make_import},
      {"schema", "Print the JSON Schema of a kind of file, or of a result.",
       "foreshard schema study > study.schema.json\n"
       "foreshard schema prediction",
       make_schema},
      {"completion", "Print the completion of bash, zsh or fish for this program.",
       "foreshard completion bash > ~/.local/share/bash-completion/completions/foreshard\n"
       "foreshard completion zsh > ~/.zfunc/_foreshard\n"
       "foreshard completion fish > ~/.config/fish/completions/foreshard.fish",
       make_completion},
      {"version", "Print the version and build of this program.", "foreshard version --format json",
       make_version},
  }};
  return kCommands;
}

std::vector<DeclaredCommand> declare_all(CLI::App& app, GlobalOptions& options) {
  app.name("foreshard");
  app.description(
      "foreshard forecasts the time and memory of sharding strategies on GPU clusters.");
  app.require_subcommand(1);
  app.footer("\n`foreshard help COMMAND` explains a command." +
             example_footer("foreshard simulate configs/studies/gpt3-175b-a100-1024.yaml"));
  app.add_option("--configs", options.configs, "Folder of the catalogue.")->type_name("DIR");
  Declaration(app).choice("--color", options.color, {"auto", "always", "never"},
                          "When texts have colours; auto: on a terminal, unless NO_COLOR is set.");
  app.set_version_flag("--version", version_line(), "Print the version and exit.");
  std::vector<DeclaredCommand> declared;
  for (const CommandInfo& info : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(info.name), std::string(info.summary));
    sub->footer(example_footer(info.example));
    sub->fallthrough();
    auto command = info.make();
    Declaration declaration(*sub);
    command->declare(declaration);
    declared.push_back({sub, std::move(command)});
  }
  return declared;
}

}  // namespace foreshard::cli
