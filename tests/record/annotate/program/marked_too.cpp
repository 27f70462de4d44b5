#include "culprit_annotate.h"

void second_file(int i);
void second_file(int i) {
  CULPRIT_STEP_BEGIN(i > 0 ? "step one" : "step other");
  CULPRIT_MARK("second file");
  CULPRIT_STEP_END();
}
