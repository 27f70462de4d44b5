#include "formats/nsys_sqlite/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace culprit::formats::nsys_sqlite {

namespace {

constexpr int kMostCellBytes = 16 << 20;
constexpr int kMostSchemaBytes = 1 << 20;  ///< of one statement
constexpr int kMostColumns = 1000;
constexpr int kMostDepth = 100;  ///< of an expression
// What counts against the expansion: memory that a row may become, and time that a step of SQLite's machine takes.
constexpr std::uint64_t kRowCost = 192;
constexpr std::uint64_t kStepCost = 8;
constexpr int kStepsAtOnce = 1000;

/// Only plain reading: no function, no recursion, nothing that writes or attaches.
int authorize(void*, int action, const char* first, const char*, const char*, const char*) {
  const bool reads = action == SQLITE_SELECT || action == SQLITE_READ;
  const bool lists_columns = action == SQLITE_PRAGMA && first != nullptr && std::string_view(first) == "table_xinfo";
  return reads || lists_columns ? SQLITE_OK : SQLITE_DENY;
}

int count_steps(void* expansion) {
  auto& counted = *static_cast<Expansion*>(expansion);
  counted.spend(kStepCost * kStepsAtOnce);
  return counted.exceeded() ? 1 : 0;
}

/// A path as the file part of a URI.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      uri += c;
  }
  return uri + "?mode=ro&immutable=1";
}

std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c;
    if (c == '"') text += '"';
  }
  return text + "\"";
}

}  // namespace

std::optional<std::int64_t> Row::integer(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

std::int64_t Row::integer(int column, std::int64_t missing) const { return integer(column).value_or(missing); }

std::optional<double> Row::number(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_double(statement_, column);
}

std::string_view Row::text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Error Database::damaged(const std::string& what) const {
  if (expansion_->exceeded()) return expansion_->error(path_);
  return input_error(fmt::format("cannot be read as SQLite: {} ({})", sqlite3_errmsg(db_.get()), what), path_,
                     "copy or export the database again");
}

Result<Database> Database::open(const std::string& path, Expansion& expansion, std::stop_token stop) {
  Database database;
  database.path_ = path;
  database.expansion_ = &expansion;
  database.stop_ = std::move(stop);
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(uri_of(path).c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database.db_.reset(db);
  if (db == nullptr) return input_error("not enough memory to open the database", path);
  if (code != SQLITE_OK) return database.damaged("opening");
  // The database comes from anywhere: nothing that its schema names may run, and no cell may eat the memory.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_drop_modules(db, nullptr);  // no virtual table has code to run
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMostCellBytes);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, kMostSchemaBytes);
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, kMostColumns);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, kMostDepth);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(db, authorize, nullptr);
  sqlite3_progress_handler(db, kStepsAtOnce, count_steps, &expansion);
  return database;
}

Result<Database::Statement> Database::prepare(const std::string& sql, const std::string& what) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) return damaged(what);
  return Statement(raw);
}

Result<std::vector<std::string>> Database::tables(std::vector<std::string>& not_plain) {
  auto statement = prepare("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')", "the schema");
  if (!statement) return statement.error();
  std::vector<std::string> names;
  for (;;) {
    const int code = sqlite3_step(statement->get());
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) return damaged("the schema");
    const Row row(statement->get());
    const std::string name(row.text(0));
    if (name.starts_with("sqlite_")) continue;
    const bool stored = row.text(1) == "table" && !row.text(2).starts_with("CREATE VIRTUAL");
    if (Status status = count_row(statement->get()); !status) return status.error();
    (stored ? names : not_plain).push_back(name);
  }
  for (std::string& name : names) {
    const auto generated = has_generated_column(name);
    if (!generated) return generated.error();
    if (*generated) not_plain.push_back(std::exchange(name, {}));
  }
  std::erase(names, std::string());
  std::ranges::sort(names);
  std::ranges::sort(not_plain);
  return names;
}

Result<bool> Database::has_generated_column(const std::string& table) {
  auto statement = prepare("PRAGMA table_xinfo(" + sql_name(table) + ")", "table " + table);
  if (!statement) return statement.error();
  constexpr int kHidden = 6;  // the column of the answer that is 0 for what is simply stored
  for (;;) {
    const int code = sqlite3_step(statement->get());
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) return damaged("table " + table);
    if (Row(statement->get()).integer(kHidden, 0) != 0) return true;
  }
}

Status Database::count_row(sqlite3_stmt* statement) {
  expansion_->spend(kRowCost);
  for (int i = 0; i < sqlite3_data_count(statement); ++i) {
    const int type = sqlite3_column_type(statement, i);
    if (type == SQLITE_TEXT || type == SQLITE_BLOB)
      expansion_->spend(static_cast<std::uint64_t>(sqlite3_column_bytes(statement, i)));
  }
  if (stop_.stop_requested()) return cancelled_error();
  if (expansion_->exceeded()) return expansion_->error(path_);
  return {};
}

Result<std::vector<std::string>> Database::columns(const std::string& table) {
  auto statement = prepare("SELECT * FROM " + sql_name(table), "table " + table);
  if (!statement) return statement.error();
  std::vector<std::string> names;
  for (int i = 0; i < sqlite3_column_count(statement->get()); ++i) {
    const char* name = sqlite3_column_name(statement->get(), i);
    names.emplace_back(name != nullptr ? name : "");
  }
  return names;
}

Result<Database::Statement> Database::select(const std::string& table, std::span<const std::string_view> names) {
  const auto have = columns(table);
  if (!have) return have.error();
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) sql += ", ";
    sql += std::ranges::find(*have, names[i]) != have->end() ? sql_name(names[i]) : "NULL";
  }
  return prepare(sql + " FROM " + sql_name(table) + " NOT INDEXED", "table " + table);
}

}  // namespace culprit::formats::nsys_sqlite
