// Reading the maps in which the programs count.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace culprit::record::bpf {

/// All rows of a hash map that other CPUs change meanwhile.
template <class Row, class Key>
std::vector<Row> rows_of(const bpf_map* map) {
  const int fd = bpf_map__fd(map);
  std::vector<Row> rows;
  Row row{};
  Key key{};
  const Key* before = nullptr;
  const std::size_t most = bpf_map__max_entries(map);
  while (rows.size() < most && bpf_map_get_next_key(fd, before, &key) == 0) {
    row.key = key;
    if (bpf_map_lookup_elem(fd, &key, &row.total) == 0) rows.push_back(row);
    before = &row.key;
  }
  return rows;
}

/// What each CPU has in a place of a map of which every CPU has its own; empty: there is no such place.
template <class Value>
std::vector<Value> of_cpus(const bpf_map* map, __u32 place) {
  std::vector<Value> values(static_cast<std::size_t>(std::max(libbpf_num_possible_cpus(), 0)));
  if (bpf_map_lookup_elem(bpf_map__fd(map), &place, values.data()) != 0) values.clear();
  return values;
}

}  // namespace culprit::record::bpf
