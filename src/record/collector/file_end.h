// What a collector does when the recording goes on in another file.
#pragma once

#include "core/units.h"
#include "record/collector/collector.h"

namespace culprit::record {

/// A collector that holds what belongs into the file it writes to.
class FileEnd {
 public:
  virtual ~FileEnd() = default;
  /// The file ends at `now` (CLOCK_MONOTONIC) and another begins: writes what was seen until then, in place of a
  /// poll().
  virtual void file_ends(Session& session, Ns now) = 0;
};

inline void end_file(Collector& collector, Session& session, Ns now) {
  if (auto* file = dynamic_cast<FileEnd*>(&collector))
    file->file_ends(session, now);
  else
    collector.poll(session, now);
}

}  // namespace culprit::record
