// Results files that are damaged, hostile, of other programs, or not to be written to.
#include "sim/sweep/store.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/seeds.h"
#include "tests/sim/sweep/stored.h"
#include "tests/test.h"

namespace foreshard::sweep::store_test {
namespace fs = std::filesystem;

std::string bytes_of(const fs::path& file) {
  return value_of(read_file(file, 1_GiB));
}

// Every file of a folder, by its name.
std::map<std::string, std::string> files_of(const TemporaryFolder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    files[entry.path().filename()] = bytes_of(entry.path());
  return files;
}

// SQLite as another program has it.
class Foreign {
 public:
  explicit Foreign(const fs::path& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &database_), SQLITE_OK);
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() { sqlite3_close(database_); }

  void run(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
  }

 private:
  sqlite3* database_ = nullptr;
};

std::string refusal_to_read(const fs::path& file) {
  std::vector<std::string> remarks;
  return message_of(read_results(file, remarks));
}
std::string refusal_to_open(const fs::path& file, std::int64_t points = kPoints) {
  std::vector<std::string> remarks;
  return message_of(Store::open(file, question(points), "work", remarks));
}

// --- Files of others ---

TEST(Store, LeavesDatabasesOfOtherProgramsUnopened) {
  const TemporaryFolder folder;
  const TemporaryFolder owner;
  // Its log is not merged yet: whoever opens it would do so.
  Foreign program(owner.path() / "r.db");
  program.run("PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)");
  for (const char* name : {"r.db", "r.db-wal"}) folder.write(name, bytes_of(owner.path() / name));
  folder.write("short.db", std::string("SQLite format 3") + '\0' + std::string(5000, 'x'));
  const auto before = files_of(folder);
  ASSERT_EQ(before.size(), 3U);
  for (const char* name : {"r.db", "short.db"}) {
    EXPECT_THAT(refusal_to_read(folder.path() / name),
                HasSubstr("is a database of another program"));
    EXPECT_THAT(refusal_to_open(folder.path() / name),
                HasSubstr("is a database of another program, and is left as it is"));
  }
  EXPECT_EQ(files_of(folder), before);
}

TEST(Store, HasNoJournalAndNoLogOfAnotherFile) {
  const TemporaryFolder folder;
  folder.write("r.db-wal", "x");
  EXPECT_THAT(refusal_to_open(folder.path() / "r.db"),
              HasSubstr("r.db-wal of such a file is there"));
  fs::remove(folder.path() / "r.db-wal");
  fill(folder.path() / "r.db");
  EXPECT_EQ(files_of(folder).size(), 1U);
  // SQLite would undo what this says, and remove another file that it names.
  folder.write("r.db-journal", "x");
  const auto before = files_of(folder);
  for (const std::string& why :
       {refusal_to_open(folder.path() / "r.db"), refusal_to_read(folder.path() / "r.db")})
    EXPECT_THAT(why, HasSubstr("r.db-journal is no part of a results file; move it away"));
  EXPECT_EQ(files_of(folder), before);
}

TEST(Store, HasNamesThatSqliteTakesForOtherThings) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const char* name : {":memory:", "file:a%20b?mode=memory", "50%41.db#1?x=1"}) {
    fill(name);
    std::vector<std::string> remarks;
    EXPECT_EQ(value_of(read_results(name, remarks), name).done(), kPoints) << name;
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
  }
  fs::current_path(before);
}

// --- Hostile files ---

// Each is made of a results file by what follows it.
TEST(Store, HasExactlyItsTables) {
  for (const std::string sql :
       {"DROP TABLE outcome; CREATE VIEW outcome AS WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL "
        "SELECT key + 1 FROM n) SELECT key, 'x' AS text, 'y' AS digest FROM n",
        "CREATE TRIGGER t AFTER INSERT ON point BEGIN DELETE FROM outcome; END",
        "CREATE INDEX i ON outcome(text)", "CREATE TABLE other(a)", "DROP TABLE point",
        "ALTER TABLE point ADD COLUMN other",
        "DROP TABLE question; CREATE TABLE question(id INTEGER PRIMARY KEY, text, work, digest)"}) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "r.db";
    fill(file);
    Foreign(file).run(sql);
    const std::string before = bytes_of(file);
    EXPECT_THAT(refusal_to_read(file), HasSubstr("has not exactly the tables of a results file"));
    EXPECT_EQ(bytes_of(file), before);
    std::vector<std::string> remarks;
    auto store = value_of(Store::open(file, question(kPoints), "work", remarks), sql);
    EXPECT_THAT(remarks, ElementsAre(HasSubstr("it is now")));
    EXPECT_EQ(bytes_of(file.string() + ".aside"), before);
  }
}

// --- Damage ---

TEST(Store, NamesADamagedOutcomeAndKeepsTheOthers) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "r.db";
  fill(file);
  std::string bytes = bytes_of(file);
  const std::size_t at = bytes.find("why of 2 ");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 7] = '3';  // as if it were the outcome of another point
  folder.write("r.db", bytes);
  std::vector<std::string> remarks;
  const Results results = value_of(read_results(file, remarks));
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0],
            file.string() + ": 1 of its points is damaged, and counted as not done:\n   x 2");
  for (std::int64_t i = 0; i < kPoints; ++i)
    EXPECT_EQ(results.outcomes[static_cast<std::size_t>(i)],
              i == 2 ? std::nullopt : std::optional(outcome(i)));
  // Merging leaves it out, too.
  remarks.clear();
  EXPECT_EQ(message_of(merge_results({file}, folder.path() / "all.db", remarks)), "accepted");
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("x 2")));
  remarks.clear();
  EXPECT_EQ(value_of(read_results(folder.path() / "all.db", remarks)).done(), kPoints - 1);
  EXPECT_THAT(remarks, IsEmpty());
  // A run that is cut short has all others.
  {
    auto store = value_of(Store::open(file, question(kPoints), "work", remarks));
    EXPECT_THAT(remarks, ElementsAre(HasSubstr("damaged, and computed again:\n   x 2")));
    EXPECT_EQ(value_of(store.held()).size(), kPoints - 1);
    EXPECT_FALSE(value_of(store.find(key(2))));
    EXPECT_EQ(value_of(store.find(key(3))), outcome(3));
    ASSERT_TRUE(store.put(2, key(2), outcome(2)).ok());
  }
  remarks.clear();
  EXPECT_EQ(value_of(read_results(file, remarks)).done(), kPoints);
  EXPECT_THAT(remarks, IsEmpty());
}

TEST(Store, KeepsTheOutcomesOfADamagedFile) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "r.db";
  fill(file, 100);
  std::string bytes = bytes_of(file);
  const std::size_t page = bytes.find("why of 40 ") / 4096 * 4096;
  ASSERT_LT(page, bytes.size() - 4096);
  for (std::size_t i = page; i < page + 4096; ++i) bytes[i] = static_cast<char>(i * 37);
  folder.write("r.db", bytes);
  EXPECT_THAT(refusal_to_read(file), HasSubstr("r.db: is damaged; foreshard study SWEEP.yaml "
                                               "--results"));
  std::vector<std::string> remarks;
  auto store = value_of(Store::open(file, question(100), "work", remarks));
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_THAT(remarks[0], HasSubstr("is damaged: it is now " + file.string() +
                                    ".aside, and a new file is begun with its "));
  std::int64_t intact = 0;
  for (std::int64_t i = 0; i < 100; ++i)
    if (const auto found = value_of(store.find(key(i)))) {
      EXPECT_EQ(*found, outcome(i));
      ++intact;
    }
  EXPECT_GE(intact, 90);
  EXPECT_LT(intact, 100);
  EXPECT_EQ(bytes_of(file.string() + ".aside"), bytes);
}

// What a file may say after it was damaged: nothing that is not true, and nothing less in silence.
void expect_no_other_results(const TemporaryFolder& folder, const std::string& bytes,
                             const std::string& what) {
  const fs::path file = folder.write("r.db", bytes);
  std::vector<std::string> remarks;
  if (const auto read = read_results(file, remarks))
    for (std::int64_t i = 0; i < kPoints; ++i) {
      const auto& found = read->outcomes[static_cast<std::size_t>(i)];
      EXPECT_TRUE(found ? *found == outcome(i) : !remarks.empty()) << what << ", point " << i;
    }
  remarks.clear();
  if (auto opened = Store::open(file, question(kPoints), "work", remarks)) {
    {
      Store store = *std::move(opened);
      for (std::int64_t i = 0; i < kPoints; ++i) {
        const auto found = value_of(store.find(key(i)));
        EXPECT_TRUE(found ? *found == outcome(i) : !remarks.empty()) << what << ", key " << i;
        EXPECT_TRUE(store.put(i, key(i), outcome(i)).ok()) << what;
      }
    }
    remarks.clear();
    EXPECT_EQ(value_of(read_results(file, remarks), what).done(), kPoints) << what;
    EXPECT_THAT(remarks, IsEmpty()) << what;
  } else {
    EXPECT_EQ(bytes_of(file), bytes) << what;
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove(entry.path());
}

TEST(Store, ChangesNoResultByAFlippedBit) {
  const TemporaryFolder folder;
  fill(folder.path() / "r.db");
  const std::string intact = bytes_of(folder.path() / "r.db");
  std::mt19937 random(1);
  for (unsigned i = 0; i < seeds(200U, 1000U); ++i) {
    // Every fourth in the header and the schema.
    const std::size_t bit = random() % (8 * (i % 4 == 0 ? 512 : intact.size()));
    std::string bytes = intact;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    expect_no_other_results(folder, bytes, "bit " + std::to_string(bit));
  }
}

// A page in the place of another one: trees with loops, rows of other tables, old versions.
TEST(Store, ChangesNoResultByAMisplacedPage) {
  const TemporaryFolder folder;
  fill(folder.path() / "r.db");
  const std::string intact = bytes_of(folder.path() / "r.db");
  const std::size_t pages = intact.size() / 4096;
  std::mt19937 random(1);
  for (unsigned i = 0; i < seeds(40U, 200U); ++i) {
    std::string bytes = intact;
    const std::size_t to = random() % pages;
    const std::size_t from = random() % pages;
    bytes.replace(4096 * to, 4096, intact.substr(4096 * from, 4096));
    expect_no_other_results(folder, bytes, fmt::format("page {} at {}", from, to));
  }
}

// --- Reading ---

TEST(Store, ReadsTheLogOfAKilledRunAndWritesNothing) {
  const TemporaryFolder folder;
  const TemporaryFolder copy;
  {
    std::vector<std::string> remarks;
    auto store = value_of(Store::open(folder.path() / "r.db", question(kPoints), "work", remarks));
    for (std::int64_t i = 0; i < kPoints; ++i) ASSERT_TRUE(store.put(i, key(i), outcome(i)).ok());
    for (const char* name : {"r.db", "r.db-wal"}) copy.write(name, bytes_of(folder.path() / name));
  }
  const auto before = files_of(copy);
  EXPECT_GT(before.at("r.db-wal").size(), 10'000U);
  std::vector<std::string> remarks;
  EXPECT_EQ(value_of(read_results(copy.path() / "r.db", remarks)).done(), kPoints);
  EXPECT_EQ(files_of(copy), before);
}

TEST(Store, IsNotReadWhileAnotherProcessWrites) {
  const TemporaryFolder folder;
  std::vector<std::string> remarks;
  const auto store =
      value_of(Store::open(folder.path() / "r.db", question(kPoints), "work", remarks));
  const pid_t reader = ::fork();
  if (reader == 0) {
    const std::string why = refusal_to_read(folder.path() / "r.db");
    ::_exit(why.find("is in use by another run") == std::string::npos ? 1 : 0);
  }
  int status = 1;
  ::waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace foreshard::sweep::store_test
