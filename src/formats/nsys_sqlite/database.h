// SQLite, as far as reading a foreign database needs it: read-only, immutable, nothing in the schema is run, and no
// more rows, text and steps than the size of the file allows.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "formats/io/expansion.h"

namespace culprit::formats::nsys_sqlite {

/// A row of the table that is being read, columns in the order they were asked for. Valid during the call only.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  [[nodiscard]] bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  /// nullopt when the cell is NULL or no integer.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
  [[nodiscard]] std::int64_t integer(int column, std::int64_t missing) const;
  /// nullopt when the cell is no number.
  [[nodiscard]] std::optional<double> number(int column) const;
  /// Empty when the cell is NULL.
  [[nodiscard]] std::string_view text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  /// Opens `path` without ever writing beside it; what is read counts against `expansion`, which must live as long.
  /// Errors: no database, damaged; of all calls: `stop` was requested.
  static Result<Database> open(const std::string& path, Expansion& expansion, std::stop_token stop = {});

  /// Names of all ordinary tables, sorted; what would have to run to be read stands in `not_plain`: views, virtual
  /// tables and tables with generated columns.
  Result<std::vector<std::string>> tables(std::vector<std::string>& not_plain);
  /// Names of the columns of `table`.
  Result<std::vector<std::string>> columns(const std::string& table);

  /// Calls `use(Row)` for every row of `table` in its own order; columns of `names` that the table does not have are
  /// NULL. Errors: damaged, more than the expansion allows.
  template <class Use>
  Status each(const std::string& table, std::span<const std::string_view> names, Use&& use) {
    auto statement = select(table, names);
    if (!statement) return statement.error();
    for (;;) {
      const int code = sqlite3_step(statement->get());
      if (code == SQLITE_DONE) return {};
      if (code != SQLITE_ROW) return damaged("table " + table);
      if (Status status = count_row(statement->get()); !status) return status;
      use(Row(statement->get()));
    }
  }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  Result<Statement> prepare(const std::string& sql, const std::string& what);
  Result<Statement> select(const std::string& table, std::span<const std::string_view> names);
  Result<bool> has_generated_column(const std::string& table);
  Status count_row(sqlite3_stmt* statement);
  [[nodiscard]] Error damaged(const std::string& what) const;

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
  Expansion* expansion_ = nullptr;
  std::stop_token stop_;
};

}  // namespace culprit::formats::nsys_sqlite
