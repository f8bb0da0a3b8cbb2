/// \file
/// The rank of a process, the number of ranks, and how the ranks find each other, from the
/// environment variables that launchers set. Programs of several processes use it: the replay of a
/// plan (validate/replay/run.cc) and teams of processes (base/team).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::net {

/// The place of this process among the ranks of its job.
struct Identity {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::int32_t local_rank = 0;  ///< Rank among this host's ranks: selects its device.
  std::string source{};         ///< Variables read: "RANK, WORLD_SIZE"; empty: none.
  /// Distinguishes this job from others with the same address or file for their rendezvous:
  /// FORESHARD_TOKEN, else the launcher's id of the job; empty where neither is known. It protects
  /// against mix-ups, not against attackers: ids of jobs can be guessed, and the token crosses the
  /// network in the clear.
  std::string token{};
};

/// Looks up a variable of the environment; empty where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The environment of this process; without variables for a Caller, which asks for itself alone.
Environment environment();

/// The identity from RANK, WORLD_SIZE and LOCAL_RANK (set by torchrun or by hand), else
/// OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE and OMPI_COMM_WORLD_LOCAL_RANK (mpirun of Open MPI),
/// else FLUX_TASK_RANK,
/// FLUX_JOB_SIZE and FLUX_TASK_LOCAL_ID (Flux), else PALS_RANKID, PMI_SIZE and PALS_LOCAL_RANKID
/// (mpiexec of HPE's PALS), else PMI_RANK, PMI_SIZE and MPI_LOCALRANKID (Hydra: mpiexec of MPICH
/// and Intel MPI), else SLURM_PROCID, SLURM_STEP_NUM_TASKS (else SLURM_NTASKS) and SLURM_LOCALID
/// (srun). One rank alone where none of them is set. SLURM's variables come last, because the
/// processes that mpirun starts in a batch script have them too. The script itself has those of the
/// job, and is one rank alone: only a step of srun has SLURM_STEP_NUM_TASKS and SLURM_STEP_ID. (No
/// other launcher's variables are seen outside of the processes that it starts.) Flux and srun may
/// also set PMI's variables, so the variables of Flux, PALS and Hydra count only where all three of
/// the same launcher are set. Source: PyTorch, "torchrun (Elastic Launch)"; Open MPI 5.0,
/// section 11.1, "Environment variables set for MPI applications"; flux-core, src/shell/task.c;
/// MPICH, src/pm/hydra, proxy; Argonne Leadership Computing Facility, "Running Jobs on Aurora"
/// (PALS); Slurm, srun(1), "Output environment variables", and sbatch(1), likewise; flux-core,
/// src/broker/runat.c.
/// \return kInvalidInput where some of the three variables of torchrun, Open MPI or Slurm are
///     missing; where a variable is not a whole number, or a rank is not below the number of ranks;
///     where RANK and OMPI_COMM_WORLD_RANK contradict each other, unless torchrun set RANK, as its
///     variable TORCHELASTIC_RUN_ID shows.
Result<Identity> identity_from(const Environment& environment);

/// How the ranks find rank 0.
struct Rendezvous {
  enum class Kind : std::uint8_t {
    kAlone,    ///< One rank.
    kTcp,      ///< Rank 0 listens at `address` and `port`.
    kOneHost,  ///< All on this host: rank 0 takes a free port and writes it into `file`.
  };
  Kind kind = Kind::kAlone;
  std::string address{};
  std::uint16_t port = 0;
  std::string file{};
};

/// The rendezvous at MASTER_ADDR and MASTER_PORT (default: 29500; under torchrun the port after it,
/// since torchrun's own store holds the port itself). Without these, ranks that mpirun, Flux or
/// PALS started on one host meet by a file that is named after the job's id; ranks that srun
/// started meet at the first host of the Slurm job step, on a port computed from the ids of job and
/// step. Source: see identity_from.
/// \return kInvalidInput where rank 0's place is not known; the message names what to set.
Result<Rendezvous> rendezvous_from(const Environment& environment, const Identity& identity);

/// Whether all ranks are on this host, as far as the variables tell: the launcher says so,
/// MASTER_ADDR names the loopback, or RANK is set by hand and MASTER_ADDR is not.
bool on_one_host(const Environment& environment, const Identity& identity);

/// The whole number that is all of `text`.
std::optional<std::int64_t> whole_number_in(std::string_view text);

/// "node[07-09,12],other" -> "node07": the first of Slurm's list of hosts.
std::string first_host(const std::string& list);

// --- the file in which rank 0 says where it listens --------------------------------------------
// For ranks that see the same folder. Its content is "PORT HOST", or "PORT" where all ranks are on
// this host.

inline constexpr const char* kLoopback = "127.0.0.1";

/// Where rank 0 listens.
struct RankZero {
  std::string host{};  ///< Empty: this host.
  std::uint16_t port = 0;

  /// The address at which this host reaches rank 0: kLoopback where `host` is empty or this host's
  /// own name, which the host itself may not be able to resolve; else `host`.
  std::string address() const;
};

/// The name of this host.
std::string own_name();

/// Writes the file.
/// \return kIo if it cannot be written (write_file).
Status write_rank_zero(const std::filesystem::path& file, const RankZero& place);

/// What rank 0 wrote; empty if there is no such file, or no port in it. The file must be a regular
/// file of this user, since other users may write to the folder (to /tmp, for example).
std::optional<RankZero> rank_zero_in(const std::filesystem::path& file);

}  // namespace foreshard::net
