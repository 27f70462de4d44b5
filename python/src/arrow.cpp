#include "arrow.h"

#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace culprit::python {

namespace {

constexpr std::int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

void append(Texts& texts, std::string_view text) {
  if (texts.bytes.size() + text.size() > 0x7fffffff)
    throw std::length_error("more than 2 GiB of different texts in one column");
  texts.bytes += text;
  texts.offsets.push_back(static_cast<std::int32_t>(texts.bytes.size()));
}

struct Exported {
  std::shared_ptr<const ArrowTable> table;
  std::vector<ArrowArray> arrays;  // of columns
  std::vector<ArrowArray*> pointers;
  std::vector<ArrowArray> dictionaries;
  std::vector<std::vector<const void*>> buffers;
  const void* nothing[1] = {nullptr};
};

void release_child(ArrowArray* array) { array->release = nullptr; }

void release_array(ArrowArray* array) {
  delete static_cast<Exported*>(array->private_data);
  array->release = nullptr;
}

void export_array(std::shared_ptr<const ArrowTable> table, ArrowArray* out) {
  auto exported = std::make_unique<Exported>();
  const std::size_t count = table->columns.size();
  exported->arrays.resize(count);
  exported->dictionaries.resize(count);
  exported->buffers.resize(2 * count);
  const auto rows = static_cast<std::int64_t>(table->rows);
  for (std::size_t c = 0; c < count; ++c) {
    const ArrowColumn& column = table->columns[c];
    std::vector<const void*>& buffers = exported->buffers[2 * c];
    const void* data = std::visit(
        [](const auto& values) -> const void* {
          if constexpr (std::is_same_v<std::decay_t<decltype(values)>, Texts>)
            return values.codes.data();
          else
            return values.data();
        },
        column.values);
    buffers = {column.valid.empty() ? nullptr : column.valid.data(), data};
    ArrowArray& array = exported->arrays[c];
    array = {rows, column.nulls, 0, 2, 0, buffers.data(), nullptr, nullptr, release_child, nullptr};
    if (const auto* texts = std::get_if<Texts>(&column.values)) {
      std::vector<const void*>& words = exported->buffers[2 * c + 1];
      words = {nullptr, texts->offsets.data(), texts->bytes.data()};
      exported->dictionaries[c] = {static_cast<std::int64_t>(texts->size()), 0, 0, 3, 0, words.data(), nullptr, nullptr,
                                   release_child, nullptr};
      array.dictionary = &exported->dictionaries[c];
    }
  }
  for (ArrowArray& array : exported->arrays) exported->pointers.push_back(&array);
  exported->table = std::move(table);
  *out = {rows,
          0,
          0,
          1,
          static_cast<std::int64_t>(count),
          exported->nothing,
          exported->pointers.data(),
          nullptr,
          release_array,
          exported.get()};
  static_cast<void>(exported.release());
}

struct ExportedSchema {
  std::shared_ptr<const ArrowTable> table;
  std::vector<ArrowSchema> columns;
  std::vector<ArrowSchema*> pointers;
  std::vector<ArrowSchema> dictionaries;
};

void release_child_schema(ArrowSchema* schema) { schema->release = nullptr; }

void release_schema(ArrowSchema* schema) {
  delete static_cast<ExportedSchema*>(schema->private_data);
  schema->release = nullptr;
}

void export_schema(std::shared_ptr<const ArrowTable> table, ArrowSchema* out) {
  auto exported = std::make_unique<ExportedSchema>();
  const std::size_t count = table->columns.size();
  exported->columns.resize(count);
  exported->dictionaries.resize(count);
  for (std::size_t c = 0; c < count; ++c) {
    const ArrowColumn& column = table->columns[c];
    const char* format = std::holds_alternative<std::vector<std::int64_t>>(column.values) ? "l"
                         : std::holds_alternative<std::vector<double>>(column.values)     ? "g"
                                                                                          : "i";
    exported->columns[c] = {format,  column.key.c_str(),   nullptr, kNullable, 0, nullptr,
                            nullptr, release_child_schema, nullptr};
    if (std::holds_alternative<Texts>(column.values)) {
      exported->dictionaries[c] = {"u", "", nullptr, 0, 0, nullptr, nullptr, release_child_schema, nullptr};
      exported->columns[c].dictionary = &exported->dictionaries[c];
    }
  }
  for (ArrowSchema& column : exported->columns) exported->pointers.push_back(&column);
  exported->table = std::move(table);
  *out = {"+s",
          "",
          nullptr,
          0,
          static_cast<std::int64_t>(count),
          exported->pointers.data(),
          nullptr,
          release_schema,
          exported.get()};
  static_cast<void>(exported.release());
}

struct Stream {
  std::shared_ptr<const ArrowTable> table;
  bool done = false;
};

int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  try {
    export_schema(static_cast<Stream*>(stream->private_data)->table, out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int stream_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto& state = *static_cast<Stream*>(stream->private_data);
  try {
    if (std::exchange(state.done, true))
      *out = {};  // the end
    else
      export_array(state.table, out);
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

const char* stream_error(ArrowArrayStream* /*stream*/) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->release = nullptr;
}

/// Marks the rows for which `known(row)` is false.
template <class Known>
void set_nulls(ArrowColumn& column, std::size_t rows, const Known& known) {
  std::vector<std::uint8_t> bits((rows + 7) / 8, 0);
  std::int64_t nulls = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    if (known(r))
      bits[r / 8] = static_cast<std::uint8_t>(bits[r / 8] | (1U << (r % 8)));
    else
      ++nulls;
  }
  if (nulls == 0) return;
  column.valid = std::move(bits);
  column.nulls = nulls;
}

}  // namespace

ArrowTable arrow_of(Table table) {
  ArrowTable out{std::move(table.key), std::move(table.title), std::move(table.notes), {}, table.rows};
  for (Column& from : table.columns) {
    ArrowColumn& column = out.columns.emplace_back();
    column.key = std::move(from.key);
    column.title = std::move(from.title);
    if (auto* strings = std::get_if<std::vector<std::string>>(&from.values)) {
      Texts texts;
      std::unordered_map<std::string_view, std::int32_t> codes;
      for (const std::string& text : *strings) {
        const auto [code, fresh] = codes.try_emplace(text, static_cast<std::int32_t>(texts.size()));
        if (fresh) append(texts, text);
        texts.codes.push_back(code->second);
      }
      column.values = std::move(texts);
    } else if (auto* whole = std::get_if<std::vector<std::int64_t>>(&from.values)) {
      column.values = std::move(*whole);
    } else {
      column.values = std::move(std::get<std::vector<double>>(from.values));
    }
    set_nulls(column, table.rows, [&](std::size_t r) -> bool { return from.known[r]; });
  }
  return out;
}

ArrowTable arrow_of(Frame frame) {
  ArrowTable out{frame.key, {}, {}, {}, frame.rows};
  for (FrameColumn& from : frame.columns) {
    ArrowColumn& column = out.columns.emplace_back();
    column.key = column.title = from.key;
    if (auto* whole = std::get_if<std::vector<std::int64_t>>(&from.values)) {
      column.values = std::move(*whole);
      if (from.negative_is_none)
        set_nulls(column, frame.rows,
                  [&](std::size_t r) { return std::get<std::vector<std::int64_t>>(column.values)[r] >= 0; });
    } else if (auto* numbers = std::get_if<std::vector<double>>(&from.values)) {
      column.values = std::move(*numbers);
    } else {
      auto& categories = std::get<Categories>(from.values);
      Texts texts;
      texts.codes = std::move(categories.codes);
      std::unordered_map<std::string_view, std::int32_t> known;
      std::vector<std::int32_t> codes;  // texts that are the same have one
      for (const std::string& text : categories.texts) {
        const auto [code, fresh] = known.try_emplace(text, static_cast<std::int32_t>(texts.size()));
        if (fresh) append(texts, text);
        codes.push_back(code->second);
      }
      if (texts.size() < codes.size())
        for (std::int32_t& code : texts.codes)
          if (code >= 0) code = codes[static_cast<std::size_t>(code)];
      column.values = std::move(texts);
      set_nulls(column, frame.rows, [&](std::size_t r) { return std::get<Texts>(column.values).codes[r] >= 0; });
    }
  }
  return out;
}

void export_stream(std::shared_ptr<const ArrowTable> table, ArrowArrayStream* out) {
  auto stream = std::make_unique<Stream>(Stream{std::move(table)});
  *out = {stream_schema, stream_next, stream_error, release_stream, stream.release()};
}

}  // namespace culprit::python
