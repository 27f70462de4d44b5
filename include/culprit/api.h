// Marks what the shared library shows; everything else in it is hidden.
#pragma once

#define CULPRIT_API __attribute__((visibility("default")))
