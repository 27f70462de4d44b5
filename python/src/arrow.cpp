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

/// What an exported array or schema needs while it lives. A reader may move a child out of its parent, so each of them
/// owns its own: the table, and what its pointers point at.
template <class Struct>
struct Owned {
  std::shared_ptr<const ArrowTable> table;
  std::vector<const void*> buffers;  // of an array
  std::vector<std::unique_ptr<Struct>> parts;
  std::vector<Struct*> children;
  std::unique_ptr<Struct> dictionary;
};

/// Releases what was not moved away.
template <class Struct>
void release(Struct* exported) {
  const std::unique_ptr<Owned<Struct>> owned(static_cast<Owned<Struct>*>(exported->private_data));
  for (Struct* child : owned->children)
    if (child->release != nullptr) child->release(child);
  if (owned->dictionary && owned->dictionary->release != nullptr) owned->dictionary->release(owned->dictionary.get());
  exported->release = nullptr;
}

/// A part that is not handed on, because something failed, is released.
template <class Struct>
struct Releasing {
  void operator()(Struct* exported) const {
    if (exported->release != nullptr) exported->release(exported);
    delete exported;
  }
};
template <class Struct>
using Part = std::unique_ptr<Struct, Releasing<Struct>>;

Part<ArrowArray> array_of(std::unique_ptr<Owned<ArrowArray>> owned, std::int64_t rows, std::int64_t nulls) {
  Part<ArrowArray> array(new ArrowArray{});
  *array = {rows,
            nulls,
            0,
            static_cast<std::int64_t>(owned->buffers.size()),
            static_cast<std::int64_t>(owned->children.size()),
            owned->buffers.data(),
            owned->children.empty() ? nullptr : owned->children.data(),
            owned->dictionary.get(),
            release<ArrowArray>,
            nullptr};
  array->private_data = owned.release();
  return array;
}

Part<ArrowArray> column_array(const std::shared_ptr<const ArrowTable>& table, const ArrowColumn& column) {
  auto owned = std::make_unique<Owned<ArrowArray>>();
  owned->table = table;
  const void* data = std::visit(
      [](const auto& values) -> const void* {
        if constexpr (std::is_same_v<std::decay_t<decltype(values)>, Texts>)
          return values.codes.data();
        else
          return values.data();
      },
      column.values);
  owned->buffers = {column.valid.empty() ? nullptr : column.valid.data(), data};
  if (const auto* texts = std::get_if<Texts>(&column.values)) {
    auto words = std::make_unique<Owned<ArrowArray>>();
    words->table = table;
    words->buffers = {nullptr, texts->offsets.data(), texts->bytes.data()};
    owned->dictionary.reset(array_of(std::move(words), static_cast<std::int64_t>(texts->size()), 0).release());
  }
  return array_of(std::move(owned), static_cast<std::int64_t>(table->rows), column.nulls);
}

void export_array(const std::shared_ptr<const ArrowTable>& table, ArrowArray* out) {
  std::vector<Part<ArrowArray>> columns;
  for (const ArrowColumn& column : table->columns) columns.push_back(column_array(table, column));
  auto owned = std::make_unique<Owned<ArrowArray>>();
  owned->table = table;
  owned->buffers = {nullptr};
  owned->parts.reserve(columns.size());
  owned->children.reserve(columns.size());
  for (Part<ArrowArray>& column : columns) {
    owned->children.push_back(column.get());
    owned->parts.emplace_back(column.release());
  }
  const Part<ArrowArray> whole = array_of(std::move(owned), static_cast<std::int64_t>(table->rows), 0);
  *out = *whole;
  whole->release = nullptr;  // moved
}

Part<ArrowSchema> schema_of(std::unique_ptr<Owned<ArrowSchema>> owned, const char* format, const char* name,
                            std::int64_t flags) {
  Part<ArrowSchema> schema(new ArrowSchema{});
  *schema = {format,
             name,
             nullptr,
             flags,
             static_cast<std::int64_t>(owned->children.size()),
             owned->children.empty() ? nullptr : owned->children.data(),
             owned->dictionary.get(),
             release<ArrowSchema>,
             nullptr};
  schema->private_data = owned.release();
  return schema;
}

Part<ArrowSchema> column_schema(const std::shared_ptr<const ArrowTable>& table, const ArrowColumn& column) {
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  owned->table = table;
  const char* format = std::holds_alternative<std::vector<std::int64_t>>(column.values) ? "l"
                       : std::holds_alternative<std::vector<double>>(column.values)     ? "g"
                                                                                        : "i";
  if (std::holds_alternative<Texts>(column.values))
    owned->dictionary.reset(schema_of(std::make_unique<Owned<ArrowSchema>>(), "u", "", 0).release());
  return schema_of(std::move(owned), format, column.key.c_str(), kNullable);
}

void export_schema(const std::shared_ptr<const ArrowTable>& table, ArrowSchema* out) {
  std::vector<Part<ArrowSchema>> columns;
  for (const ArrowColumn& column : table->columns) columns.push_back(column_schema(table, column));
  auto owned = std::make_unique<Owned<ArrowSchema>>();
  owned->table = table;
  owned->parts.reserve(columns.size());
  owned->children.reserve(columns.size());
  for (Part<ArrowSchema>& column : columns) {
    owned->children.push_back(column.get());
    owned->parts.emplace_back(column.release());
  }
  const Part<ArrowSchema> whole = schema_of(std::move(owned), "+s", "", 0);
  *out = *whole;
  whole->release = nullptr;  // moved
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
      if (from.has_none)
        set_nulls(column, frame.rows,
                  [&](std::size_t r) { return std::get<std::vector<std::int64_t>>(column.values)[r] != -1; });
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
