// What bpf/annotate.bpf.c hands to the recorder. Plain C of the kernel's and the recorder's side.
#pragma once

enum { CULPRIT_ANNOTATE_TEXT = 240, CULPRIT_ANNOTATE_FILES = 1024, CULPRIT_ANNOTATE_DEPTH = 64 };
enum culprit_annotate_kind { CULPRIT_STEP_BEGUN = 1, CULPRIT_STEP_ENDED = 2, CULPRIT_MARKED = 3 };

struct culprit_annotation {
  unsigned long long at;  // CLOCK_MONOTONIC
  int tgid;
  int tid;
  unsigned int kind;
  unsigned int depth;  // of a step that begins or ends; of one within no other 1
  int text_bytes;      // with its zero; negative: the name could not be read
  char text[CULPRIT_ANNOTATE_TEXT];
};
