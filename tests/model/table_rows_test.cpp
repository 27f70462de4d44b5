#include "model/table_rows.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::model {
namespace {

struct Fruit {
  std::string name;
  std::uint64_t count = 0;
  std::optional<double> weight;
};

const std::vector<Fruit> kFruits = {{"apple", 3, 0.2}, {"pear", 5, std::nullopt}, {"plum", 8, std::nullopt}};

ColumnsOf<Fruit> columns(Presence weight) {
  return {{{"Name", "name", ColumnType::name}, &Fruit::name},
          {{"Weight", "weight", ColumnType::number}, &Fruit::weight, weight},
          {{"Twice", "twice", ColumnType::count}, [](const Fruit& fruit) { return 2 * fruit.count; }}};
}

std::vector<std::string> keys(const Table& table) {
  std::vector<std::string> all;
  for (const Column& column : table.columns) all.push_back(column.key);
  return all;
}

TEST(TableRows, EveryRowHasTheCellsOfItsColumnsInTheirOrder) {
  const Table table = make_table("Fruits", "fruits", columns(Presence::always), kFruits);
  EXPECT_EQ(table.title, "Fruits");
  EXPECT_EQ(table.key, "fruits");
  EXPECT_EQ(keys(table), (std::vector<std::string>{"name", "weight", "twice"}));
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0], (std::vector<Cell>{"apple", 0.2, std::int64_t{6}}));
  EXPECT_EQ(table.rows[1], (std::vector<Cell>{"pear", Cell(), std::int64_t{10}}));
}

TEST(TableRows, AColumnThatIsNotWantedIsInNoRow) {
  const Table table = make_table("", "", columns(present_if(false)), kFruits);
  EXPECT_EQ(keys(table), (std::vector<std::string>{"name", "twice"}));
  EXPECT_EQ(table.rows[0], (std::vector<Cell>{"apple", std::int64_t{6}}));
}

TEST(TableRows, AColumnOfWhatIsKnownStaysWhenOneRowKnowsIt) {
  EXPECT_EQ(make_table("", "", columns(Presence::if_known), kFruits).columns.size(), 3U);
}

TEST(TableRows, AColumnOfWhatIsKnownIsLeftOutWhenNoRowKnowsIt) {
  const Table table = make_table("", "", columns(Presence::if_known), kFruits | std::views::drop(1));
  EXPECT_EQ(keys(table), (std::vector<std::string>{"name", "twice"}));
  EXPECT_EQ(table.rows[1], (std::vector<Cell>{"plum", std::int64_t{16}}));
}

TEST(TableRows, AlwaysKeepsAColumnWithoutRows) {
  EXPECT_EQ(make_table("", "", columns(Presence::always), std::vector<Fruit>()).columns.size(), 3U);
}

TEST(TableRows, ALimitCutsAndZeroDoesNot) {
  EXPECT_EQ(make_table("", "", columns(Presence::always), kFruits, 2).rows.size(), 2U);
  EXPECT_EQ(make_table("", "", columns(Presence::always), kFruits, 0).rows.size(), 3U);
}

TEST(TableRows, CellsOfWhatIsNotKnownAreEmpty) {
  EXPECT_EQ(known_cell(-1), Cell());
  EXPECT_EQ(known_cell(0), Cell(std::int64_t{0}));
  EXPECT_EQ(number_cell(std::numeric_limits<double>::quiet_NaN()), Cell());
  EXPECT_EQ(number_cell(std::numeric_limits<double>::infinity()), Cell());
  EXPECT_EQ(text_cell(""), Cell());
  EXPECT_EQ(share_cell(Ns{1}, Ns{0}), Cell());
  EXPECT_EQ(share_cell(Ns{1}, Ns{4}), Cell(0.25));
  EXPECT_EQ(cell_of(std::optional<std::int64_t>()), Cell());
  EXPECT_EQ(cell_of(std::string_view("text")), Cell("text"));
}

TEST(TableRows, ColumnsWithoutAWordAreDropped) {
  Table table = fact_table("", "", {{"", "a"}, {"", "b"}});
  drop_empty_columns(table);
  EXPECT_EQ(keys(table), std::vector<std::string>{"value"});
  EXPECT_EQ(table.rows[1], std::vector<Cell>{"b"});
}

}  // namespace
}  // namespace culprit::model
