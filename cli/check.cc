#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/quoted.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/options.h"
#include "cli/output.h"

#include "sim/report/report.h"
#include "sim/study/run.h"
#include "sim/study/study.h"
#include "strategies/graph/counts.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/hf_config.h"
#include "strategies/graph/operators/build.h"
#include "topology/import/import.h"

namespace foreshard::cli {
namespace {

std::string as_comments(std::string_view first, const report::Subject& subject) {
  return yaml::comment(first) + yaml::comment("model     " + subject.model) +
         yaml::comment("cluster   " + subject.cluster) +
         yaml::comment("strategy  " + subject.strategy);
}

class Check final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("FILE", file_,
                                  "The file to read: YAML (- for stdin), an .onnx model (--set "
                                  "dims.NAME=N), or a config.json of Hugging Face (--set "
                                  "sequence=N).");
    declaration.option("--kind", "KIND", kind_,
                       "The kind of file: " + join(kind_names()) +
                           " (default: recognised by its folder or its keys).");
    add_set(declaration, sets_);
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment& environment) override {
    FORESHARD_ASSIGN(const auto overrides, overrides_of(sets_));
    if (file_.ends_with(".onnx")) return check_onnx(overrides);
    std::error_code status;
    if (std::filesystem::is_directory(file_, status) && study::is_hf_config(file_))
      return check_hf_config({.catalogue = environment.catalogue, .overrides = overrides});
    if (!std::filesystem::exists(file_, status) && is_entry(environment)) return named_entry();
    FORESHARD_ASSIGN(const auto bytes, read_file(file_, limits::kConfig));
    if (kind_.empty() && looks_like_hf_config(bytes) && study::is_hf_config(file_))
      return check_hf_config({.catalogue = environment.catalogue, .overrides = overrides});
    if (const ImportFormat* format = import_format_of(bytes)) return not_imported(*format);
    const FileKind* kind = kind_.empty() ? &kind_of(file_, bytes) : find_kind(kind_);
    if (kind == nullptr) {
      const auto near = nearest_name(kind_, kind_names());
      return fail(
          fmt::format("no kind of file is called '{}'", kind_),
          near ? fmt::format("did you mean '{}'?", *near) : "use " + quoted_choice(kind_names()));
    }
    const yaml::Options options{.catalogue = environment.catalogue, .overrides = overrides};
    yaml::Loader loader(options);
    FORESHARD_ASSIGN(auto echo, kind->echo_file(loader, file_));
    std::string text = yaml::comment(fmt::format("{} is a well-formed {}.", file_, kind->name));
    if (kind->name == "study") {
      FORESHARD_ASSIGN(auto summary, check_study(options));
      text += summary;
    }
    if (kind->name == "graph") {
      FORESHARD_ASSIGN(const auto summary, check_graph(options));
      text += summary;
    }
    FORESHARD_TRY(write_result(output_, text + echo));
    return kDone;
  }

 private:
  // Whether FILE is the name of an entry of the catalogue.
  bool is_entry(const Environment& environment) const {
    return std::ranges::any_of(kinds(), [&](const FileKind& kind) {
      const auto names = entries_of(kind, environment.catalogue);
      return std::ranges::find(names, file_) != names.end();
    });
  }

  ExitCode named_entry() const {
    return fail(fmt::format("there is no file '{}', but an entry of the catalogue; check reads "
                            "files",
                            file_),
                "foreshard catalog show " + file_);
  }

  ExitCode not_imported(const ImportFormat& format) const {
    return fail(
        fmt::format("{} is in the format {} of another tool", file_, format.name),
        fmt::format("foreshard topology import {} -o FILE.yaml makes a file that check reads",
                    file_));
  }

  // Prints the model in a config.json as a file of kind model.
  Result<ExitCode> check_hf_config(yaml::Options options) const {
    yaml::Loader loader(std::move(options));
    const auto source =
        loader.read_text<study::HuggingFaceModel>("config: " + yaml::quoted(file_), "command line");
    if (!source) return source.error();
    auto imported = study::import_model(*source, {}, loader);
    if (!imported) return in_file(file_, imported.error());
    const auto model = checked(imported->model);
    if (!model) return in_file(file_, model.error());
    std::string text =
        yaml::comment(file_ + " is a config.json of Hugging Face that foreshard can model.") +
        yaml::comment(fmt::format("parameters  {}", parameter_count(*model)));
    for (const std::string& remark : imported->remarks) text += yaml::comment("remark: " + remark);
    FORESHARD_TRY(write_result(output_, text + yaml::echo(with_sizes(*model))));
    return kDone;
  }

  // Adds the path to an error of a file; errors of reading it (kIo) already name it.
  static Error in_file(const std::string& path, const Error& error) {
    return error.code == Error::Code::kIo ? error : Error{error.code, path + ": " + error.message};
  }

  Result<ExitCode> check_onnx(const std::vector<yaml::Override>& overrides) const {
    std::map<std::string, std::int64_t> dims;
    for (const yaml::Override& each : overrides) {
      std::int64_t size = 0;
      const char* end = each.value.data() + each.value.size();
      const bool is_dim = each.path.starts_with("dims.");
      if (!is_dim || std::from_chars(each.value.data(), end, size).ptr != end || size < 1)
        return fail(
            fmt::format("--set {}={}: of an .onnx file only the sizes of its dimensions can "
                        "be set",
                        each.path, each.value),
            "write dims.NAME=N, for example dims.sequence=128");
      dims[each.path.substr(5)] = size;
    }
    FORESHARD_ASSIGN(const auto summary, study::onnx_summary(file_, dims));
    Page page(paper_for(output_));
    page.add(summary);
    FORESHARD_TRY(write_result(output_, std::move(page).take()));
    return kDone;
  }

  // The checks that need several files: the parts of a study fit together and give a Program.
  Result<std::string> check_study(yaml::Options options) const {
    FORESHARD_ASSIGN(const auto study, study::load_study({.study = file_}, std::move(options)));
    FORESHARD_ASSIGN(const auto cluster, study::cluster_of(study));
    FORESHARD_TRY(study::program_of(study, cluster));
    return as_comments("Its parts fit together.", report::subject_of(study));
  }

  // Checks that the graph's operators fit together; with a mesh, prints how the annotations
  // propagate through the graph.
  Result<std::string> check_graph(yaml::Options options) const {
    yaml::Loader loader(std::move(options));
    FORESHARD_ASSIGN(const auto config, loader.read_file<GraphConfig>(file_));
    const auto mesh = mesh_of(config);
    FORESHARD_ASSIGN(const auto graph, build_graph(config, mesh, loader));
    std::string text =
        fmt::format("# operators   {}\n# parameters  {}\n# forward     {} in products, {} in all\n",
                    graph.operators.size(), parameter_elements(graph), format(product_flops(graph)),
                    format(flops_of(graph)));
    if (mesh.empty()) return text;
    const auto sharded = distribute(graph, mesh, Flow::kBothWays, BackwardPass::kFollows);
    if (!sharded) return loader.error_at("mesh", sharded.error().message);
    text += fmt::format("# conversions {}\n", sharded->conversions.size());
    for (const Conversion& each : sharded->conversions)
      text += yaml::comment(fmt::format("  {}: {} -> {}", graph[each.tensor].name,
                                        describe(each.from, mesh), describe(each.to, mesh)));
    for (const std::string& remark : sharded->remarks) text += yaml::comment("remark: " + remark);
    return text;
  }

  std::string file_;
  std::string kind_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_check() {
  return std::make_unique<Check>();
}

}  // namespace foreshard::cli
