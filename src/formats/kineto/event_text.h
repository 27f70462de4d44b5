// Reads the text of one event. The order of its members, escapes in keys and values, and numbers written as texts
// change nothing; a member that stands twice is taken from its last place, and counted.
#pragma once

#include <simdjson.h>

#include "formats/kineto/event.h"

namespace culprit::formats::kineto {

/// Reads one event object into `event`, which is clear. False when the text is damaged.
bool read_event(simdjson::ondemand::object& object, Event& event);

/// Adds the members of `object` to the arguments of `event`. False when the text is damaged.
bool read_arguments(simdjson::ondemand::object& object, Event& event);

}  // namespace culprit::formats::kineto
