// Tables by the Arrow C data interface, as readers use it: they move what they get, and release it in whatever order.
#include "src/arrow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::python {
namespace {

using Shared = std::shared_ptr<const ArrowTable>;

/// Columns whole, number, text; the second row is not known.
Shared sample(std::size_t rows = 3) {
  Table table;
  table.key = "sample";
  table.rows = rows;
  const std::vector<std::string> words = {"first", "second", "first"};
  const std::vector<std::int64_t> whole = {1, 2, 3};
  const std::vector<double> numbers = {0.5, 1.5, 2.5};
  const std::vector<bool> known = {true, false, true};
  const auto count = static_cast<std::ptrdiff_t>(rows);
  const std::vector<bool> rows_known(known.begin(), known.begin() + count);
  table.columns.resize(3);
  table.columns[0].key = "whole";
  table.columns[0].values = std::vector(whole.begin(), whole.begin() + count);
  table.columns[1].key = "number";
  table.columns[1].values = std::vector(numbers.begin(), numbers.begin() + count);
  table.columns[2].key = "text";
  table.columns[2].values = std::vector(words.begin(), words.begin() + count);
  for (Column& column : table.columns) column.known = rows_known;
  return std::make_shared<const ArrowTable>(arrow_of(std::move(table)));
}

template <class Struct>
Struct moved(Struct& from) {
  const Struct to = from;
  from.release = nullptr;
  return to;
}

template <class Struct>
void release(Struct& exported) {
  ASSERT_NE(exported.release, nullptr);
  exported.release(&exported);
  EXPECT_EQ(exported.release, nullptr);
}

/// The schema and the one batch of a table, whose stream has been released.
struct Read {
  ArrowSchema schema{};
  ArrowArray array{};
};
Read read(Shared table) {
  ArrowArrayStream stream{};
  export_stream(std::move(table), &stream);
  Read read;
  EXPECT_EQ(stream.get_schema(&stream, &read.schema), 0);
  EXPECT_EQ(stream.get_next(&stream, &read.array), 0);
  ArrowArray end{};
  end.release = read.array.release;
  EXPECT_EQ(stream.get_next(&stream, &end), 0);
  EXPECT_EQ(end.release, nullptr) << "one batch";
  EXPECT_EQ(stream.get_last_error(&stream), nullptr);
  release(stream);
  return read;
}

std::int64_t whole_at(const ArrowArray& array, std::size_t row) {
  return static_cast<const std::int64_t*>(array.buffers[1])[row];
}

std::string_view text_at(const ArrowArray& array, std::size_t row) {
  const std::int32_t code = static_cast<const std::int32_t*>(array.buffers[1])[row];
  const auto* offsets = static_cast<const std::int32_t*>(array.dictionary->buffers[1]);
  const auto* bytes = static_cast<const char*>(array.dictionary->buffers[2]);
  return {bytes + offsets[code], static_cast<std::size_t>(offsets[code + 1] - offsets[code])};
}

TEST(Arrow, AStreamGivesTheTable) {
  Read got = read(sample());
  EXPECT_STREQ(got.schema.format, "+s");
  ASSERT_EQ(got.schema.n_children, 3);
  EXPECT_STREQ(got.schema.children[0]->format, "l");
  EXPECT_STREQ(got.schema.children[1]->format, "g");
  EXPECT_STREQ(got.schema.children[2]->format, "i");
  EXPECT_STREQ(got.schema.children[2]->name, "text");
  EXPECT_STREQ(got.schema.children[2]->dictionary->format, "u");
  EXPECT_EQ(got.array.length, 3);
  ASSERT_EQ(got.array.n_children, 3);
  EXPECT_EQ(whole_at(*got.array.children[0], 2), 3);
  EXPECT_EQ(got.array.children[0]->null_count, 1);
  EXPECT_EQ(*static_cast<const std::uint8_t*>(got.array.children[0]->buffers[0]), 0b101);
  EXPECT_EQ(text_at(*got.array.children[2], 2), "first");
  EXPECT_EQ(got.array.children[2]->dictionary->length, 2);
  release(got.schema);
  release(got.array);
}

TEST(Arrow, AColumnThatWasMovedOutlivesTheTable) {
  Shared table = sample();
  const std::weak_ptr<const ArrowTable> watched = table;
  Read got = read(std::move(table));
  ArrowArray whole = moved(*got.array.children[0]);
  ArrowArray text = moved(*got.array.children[2]);
  ArrowSchema schema = moved(*got.schema.children[2]);
  release(got.array);
  release(got.schema);
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(whole_at(whole, 2), 3);
  EXPECT_EQ(text_at(text, 0), "first");
  EXPECT_STREQ(schema.name, "text");
  EXPECT_STREQ(schema.dictionary->format, "u");
  release(whole);
  release(text);
  EXPECT_FALSE(watched.expired()) << "the schema has its names of it";
  release(schema);
  EXPECT_TRUE(watched.expired());
}

TEST(Arrow, ADictionaryThatWasMovedOutlivesItsColumn) {
  Shared table = sample();
  const std::weak_ptr<const ArrowTable> watched = table;
  Read got = read(std::move(table));
  ArrowArray words = moved(*got.array.children[2]->dictionary);
  ArrowSchema schema = moved(*got.schema.children[2]->dictionary);
  release(got.array);
  release(got.schema);
  EXPECT_EQ(std::string_view(static_cast<const char*>(words.buffers[2]), 5), "first");
  EXPECT_STREQ(schema.format, "u");
  release(schema);
  release(words);
  EXPECT_TRUE(watched.expired());
}

TEST(Arrow, WhatWasReleasedByItselfIsNotReleasedAgain) {
  Shared table = sample();
  const std::weak_ptr<const ArrowTable> watched = table;
  Read got = read(std::move(table));
  release(*got.array.children[1]);
  release(*got.array.children[2]);
  release(*got.schema.children[0]);
  EXPECT_EQ(whole_at(*got.array.children[0], 0), 1);
  release(got.array);
  release(got.schema);
  EXPECT_TRUE(watched.expired());
}

TEST(Arrow, ATableWithoutRowsHasItsColumns) {
  Read got = read(sample(0));
  ASSERT_EQ(got.schema.n_children, 3);
  EXPECT_STREQ(got.schema.children[2]->format, "i");
  EXPECT_EQ(got.array.length, 0);
  EXPECT_EQ(got.array.children[2]->dictionary->length, 0);
  release(got.array);
  release(got.schema);
}

TEST(Arrow, ATableWithoutColumnsIsEmpty) {
  Read got = read(std::make_shared<const ArrowTable>());
  EXPECT_EQ(got.schema.n_children, 0);
  EXPECT_EQ(got.array.n_children, 0);
  release(got.schema);
  release(got.array);
}

TEST(Arrow, AStreamThatNobodyReadsLetsTheTableGo) {
  Shared table = sample();
  const std::weak_ptr<const ArrowTable> watched = table;
  ArrowArrayStream stream{};
  export_stream(std::move(table), &stream);
  release(stream);
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace culprit::python
