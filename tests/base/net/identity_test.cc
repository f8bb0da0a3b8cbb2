#include "base/net/identity.h"

#include "tests/test.h"

namespace foreshard::net {
namespace {

using testing::MatchesRegex;
using Variables = std::map<std::string, std::string>;

Environment of(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

Variables ranked(int rank, int ranks, int local) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)},
          {"LOCAL_RANK", std::to_string(local)}};
}
Variables by_mpirun(int rank, int ranks, int local) {
  return {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(ranks)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local)}};
}
Variables by_srun(int rank, int ranks, int local) {
  return {{"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_NTASKS", std::to_string(ranks)},
          {"SLURM_LOCALID", std::to_string(local)}};
}
Variables by_flux(int rank, int ranks, int local) {
  return {{"FLUX_TASK_RANK", std::to_string(rank)},
          {"FLUX_JOB_SIZE", std::to_string(ranks)},
          {"FLUX_TASK_LOCAL_ID", std::to_string(local)},
          {"FLUX_JOB_ID", "f2Xq"}};
}
Variables by_pmi(int rank, int ranks) {
  return {{"PMI_RANK", std::to_string(rank)}, {"PMI_SIZE", std::to_string(ranks)}};
}
Variables by_hydra(int rank, int ranks, int local) {
  auto variables = by_pmi(rank, ranks);
  variables["MPI_LOCALRANKID"] = std::to_string(local);
  return variables;
}
Variables by_pals(int rank, int ranks, int local) {
  auto variables = by_pmi(rank, ranks);
  variables["PALS_RANKID"] = std::to_string(rank);
  variables["PALS_LOCAL_RANKID"] = std::to_string(local);
  variables["PALS_APID"] = "7a-b";
  return variables;
}
Variables operator+(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

std::string text(const Variables& variables) {
  const auto identity = identity_from(of(variables));
  if (!identity) return identity.error().message;
  return std::to_string(identity->rank) + "/" + std::to_string(identity->ranks) + "/" +
         std::to_string(identity->local_rank);
}

TEST(Identity, ComesFromTheLauncher) {
  EXPECT_EQ(text({}), "0/1/0");
  EXPECT_EQ(text(ranked(9, 16, 1)), "9/16/1");
  EXPECT_EQ(text(by_mpirun(3, 4, 3)), "3/4/3");
  EXPECT_EQ(text(by_srun(5, 8, 1)), "5/8/1");
  EXPECT_EQ(text(by_flux(5, 8, 1)), "5/8/1");
  EXPECT_EQ(text(by_flux(5, 8, 1) + by_pmi(5, 8)), "5/8/1");
  EXPECT_EQ(text(by_pals(5, 8, 1)), "5/8/1");
  EXPECT_EQ(text(by_hydra(5, 8, 1)), "5/8/1");
}

// srun --mpi=pmi2 sets PMI_RANK and PMI_SIZE, too; Hydra in a batch script has SLURM's of the
// script.
TEST(Identity, TakesHydraForThatOnlyWhereAllOfItIsThere) {
  EXPECT_EQ(text(by_srun(5, 8, 1) + by_pmi(5, 8)), "5/8/1");
  EXPECT_EQ(text(by_hydra(5, 8, 1) + by_srun(0, 1, 0)), "5/8/1");
  EXPECT_EQ(text(by_pmi(5, 8)), "0/1/0");
}

TEST(Identity, TellsJobsApart) {
  const auto token = [](const Variables& variables) {
    const auto identity = identity_from(of(variables));
    return identity ? identity->token : identity.error().message;
  };
  const Variables step{{"SLURM_JOB_ID", "1001"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_EQ(token(by_srun(0, 3, 0) + step), "1001.2");
  EXPECT_EQ(token(by_mpirun(0, 2, 0) + Variables{{"PMIX_NAMESPACE", "12@1"}} + step), "12@1");
  EXPECT_EQ(token(by_flux(0, 2, 0)), "f2Xq");
  EXPECT_EQ(token(by_pals(0, 2, 0)), "7a-b");
  EXPECT_EQ(token(ranked(0, 2, 0) + Variables{{"TORCHELASTIC_RUN_ID", "x"}}), "x");
  // Ranks that a script starts one by one may be steps of their own.
  EXPECT_EQ(token(ranked(0, 2, 0) + step), "");
  EXPECT_EQ(token(by_srun(0, 3, 0) + step + Variables{{"FORESHARD_TOKEN", "mine"}}), "mine");
}

// A batch script has SLURM_PROCID 0; what mpirun starts in it has both.
TEST(Identity, PrefersTheInnermostLauncher) {
  EXPECT_EQ(text(by_mpirun(3, 4, 3) + by_srun(0, 4, 0)), "3/4/3");
  EXPECT_EQ(text(ranked(2, 4, 0) + by_srun(1, 2, 0)), "2/4/0");
  EXPECT_EQ(text(ranked(3, 4, 3) + by_mpirun(3, 4, 3)), "3/4/3");
  EXPECT_EQ(text(ranked(7, 8, 3) + by_mpirun(1, 2, 0) + Variables{{"TORCHELASTIC_RUN_ID", "x"}}),
            "7/8/3");
}

// A batch script, or a shell of salloc: the job's variables, and no step of srun. The third is a
// shell of salloc with LaunchParameters=use_interactive_step, and what sbatch starts from one.
TEST(Identity, OfABatchScriptIsAlone) {
  const Variables job{{"SLURM_JOB_ID", "1001"}, {"SLURM_JOB_NODELIST", "node[07-09]"}};
  EXPECT_EQ(text(by_srun(0, 64, 0) + job), "0/1/0");
  EXPECT_EQ(text(Variables{{"SLURM_NTASKS", "64"}} + job), "0/1/0");
  EXPECT_EQ(text(Variables{{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}} + job), "0/1/0");
  const Variables shell{{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_EQ(text(by_srun(0, 64, 0) + job + shell), "0/1/0");
  // Steps: whole, with --preserve-env, and of a version that counts in SLURM_NTASKS alone.
  const Variables step{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_EQ(text(by_srun(0, 4, 0) + job + step), "0/4/0");
  EXPECT_EQ(text(by_srun(3, 64, 1) + job + step), "3/4/1");
  EXPECT_EQ(text(by_srun(0, 4, 0) + job + Variables{{"SLURM_STEP_ID", "0"}}), "0/4/0");
}

// Where rank 0 of a team listens on the loopback alone.
TEST(OneHost, IsWhatTheLauncherSaysOrNobodyNames) {
  const auto here = [](const Variables& variables) {
    return on_one_host(of(variables), value_of(identity_from(of(variables))));
  };
  EXPECT_TRUE(here({}));
  EXPECT_TRUE(here(ranked(0, 2, 0)));
  EXPECT_TRUE(here(ranked(0, 2, 0) + Variables{{"MASTER_ADDR", "127.0.0.1"}}));
  EXPECT_FALSE(here(ranked(0, 2, 0) + Variables{{"MASTER_ADDR", "node1"}}));
  EXPECT_TRUE(here(by_mpirun(0, 2, 0) + Variables{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_FALSE(here(by_mpirun(0, 4, 0) + Variables{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_TRUE(here(by_flux(0, 2, 0) + Variables{{"FLUX_JOB_NNODES", "1"}}));
  EXPECT_FALSE(here(by_flux(0, 2, 0) + Variables{{"FLUX_JOB_NNODES", "2"}}));
  EXPECT_TRUE(here(by_pals(0, 2, 0) + Variables{{"PALS_LOCAL_SIZE", "2"}}));
  EXPECT_TRUE(here(by_hydra(0, 2, 0) + Variables{{"MPI_LOCALNRANKS", "2"}}));
  EXPECT_FALSE(here(by_hydra(0, 4, 0) + Variables{{"MPI_LOCALNRANKS", "2"}}));
  const Variables step{{"SLURM_STEP_ID", "0"}};
  EXPECT_TRUE(here(by_srun(0, 2, 0) + step + Variables{{"SLURM_STEP_NUM_NODES", "1"}}));
  EXPECT_FALSE(here(by_srun(0, 2, 0) + step + Variables{{"SLURM_STEP_NUM_NODES", "2"}}));
}

TEST(Identity, RefusesHalfOfIt) {
  EXPECT_EQ(text({{"RANK", "1"}}),
            "RANK set, but not WORLD_SIZE and LOCAL_RANK: a launcher (torchrun, mpirun, srun) sets "
            "all three; unset them to run one rank alone");
  EXPECT_THAT(text({{"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}), HasSubstr("but not RANK"));
  EXPECT_THAT(text({{"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "0"}}),
              HasSubstr("but not SLURM_NTASKS"));
}

TEST(Identity, RefusesContradictions) {
  EXPECT_EQ(text(ranked(4, 4, 0)), "RANK is 4, but WORLD_SIZE is 4: ranks count from 0");
  EXPECT_EQ(text(ranked(1, 4, 3)), "LOCAL_RANK is 3, but RANK is 1: a host's ranks are among all");
  EXPECT_EQ(text(ranked(1, 4, 1) + by_mpirun(2, 4, 1)),
            "RANK and WORLD_SIZE say rank 1 of 4, but OMPI_COMM_WORLD_RANK and _SIZE say 2 of 4; "
            "unset those that are wrong");
}

TEST(Identity, RefusesWhatIsNoNumber) {
  const auto with = [](const std::string& rank) {
    auto variables = ranked(0, 4, 0);
    variables["RANK"] = rank;
    return text(variables);
  };
  EXPECT_EQ(with("one"), "RANK is 'one', not a whole number of 0 or more");
  EXPECT_EQ(with(""), "RANK is '', not a whole number of 0 or more");
  EXPECT_EQ(with("-1"), "RANK is '-1', not a whole number of 0 or more");
  EXPECT_EQ(with("1.5"), "RANK is '1.5', not a whole number of 0 or more");
  EXPECT_EQ(with("99999999999999999999"),
            "RANK is '99999999999999999999', not a whole number of 0 or more");
}

std::string meeting(const Variables& variables) {
  const auto identity = identity_from(of(variables));
  if (!identity) return identity.error().message;
  const auto place = rendezvous_from(of(variables), *identity);
  if (!place) return place.error().message;
  switch (place->kind) {
    case Rendezvous::Kind::kAlone:
      return "alone";
    case Rendezvous::Kind::kTcp:
      return place->address + ":" + std::to_string(place->port);
    case Rendezvous::Kind::kOneHost:
      return place->file;
  }
  return "";
}

TEST(Rendezvous, IsWhereTheLauncherSays) {
  EXPECT_EQ(meeting({}), "alone");
  const Variables master{{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "1234"}};
  EXPECT_EQ(meeting(ranked(0, 2, 0) + master), "node1:1234");
  EXPECT_EQ(meeting(by_mpirun(0, 2, 0) + master), "node1:1234");
  EXPECT_EQ(meeting(ranked(0, 2, 0) + Variables{{"MASTER_ADDR", "node1"}}), "node1:29500");
  // torchrun's agent serves a store of its own at that port.
  EXPECT_EQ(meeting(ranked(0, 2, 0) + master + Variables{{"TORCHELASTIC_RUN_ID", "x"}}),
            "node1:1235");
}

TEST(Rendezvous, OfOneHostIsAFileNamedAsTheJob) {
  const Variables job{{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_NAMESPACE", "1234.5"}};
  EXPECT_THAT(meeting(by_mpirun(0, 2, 0) + job), MatchesRegex(".*/foreshard-replay-[0-9]+-1234_5"));
  EXPECT_THAT(meeting(by_mpirun(0, 4, 0) + job),
              HasSubstr("mpirun started ranks on several hosts"));
}

TEST(Rendezvous, OfOneHostUnderFluxAndPals) {
  const Variables one{{"FLUX_JOB_NNODES", "1"}}, two{{"FLUX_JOB_NNODES", "2"}};
  EXPECT_THAT(meeting(by_flux(0, 2, 0) + one), MatchesRegex(".*/foreshard-replay-[0-9]+-f2Xq"));
  EXPECT_THAT(meeting(by_flux(0, 2, 0) + two), HasSubstr("does not know where rank 0 is"));
  EXPECT_THAT(meeting(by_pals(0, 2, 0) + Variables{{"PALS_LOCAL_SIZE", "2"}}),
              MatchesRegex(".*/foreshard-replay-[0-9]+-7a_b"));
  EXPECT_THAT(meeting(by_pals(0, 4, 0) + Variables{{"PALS_LOCAL_SIZE", "2"}}),
              HasSubstr("does not know where rank 0 is"));
}

// 20000 + (1001 * 64 + 2) mod 12000 = 20000 + 64066 mod 12000 = 24066
TEST(Rendezvous, OfSlurmIsTheFirstHostOfTheStep) {
  const Variables step{
      {"SLURM_STEP_NODELIST", "node[07-09]"}, {"SLURM_JOB_ID", "1001"}, {"SLURM_STEP_ID", "2"}};
  EXPECT_EQ(meeting(by_srun(0, 3, 0) + step), "node07:24066");
}

TEST(Rendezvous, SaysWhatToSet) {
  EXPECT_EQ(meeting(ranked(1, 2, 0)),
            "rank 1 of 2 does not know where rank 0 is: set MASTER_ADDR (and MASTER_PORT), or give "
            "a folder that all of them see (--rendezvous FOLDER)");
  EXPECT_THAT(meeting(ranked(0, 2, 0) + Variables{{"MASTER_PORT", "1"}}),
              HasSubstr("not MASTER_ADDR"));
  EXPECT_THAT(meeting(ranked(0, 2, 0) + Variables{{"MASTER_ADDR", "a"}, {"MASTER_PORT", "http"}}),
              HasSubstr("MASTER_PORT is 'http'"));
}

TEST(FirstHost, ReadsSlurmsLists) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("node[7-9]"), "node7");
  EXPECT_EQ(first_host("node[07,12-14],other"), "node07");
  EXPECT_EQ(first_host("rack[1-2]-a,b"), "rack1-a");
  EXPECT_EQ(first_host("broken["), "broken");
}

}  // namespace
}  // namespace foreshard::net
