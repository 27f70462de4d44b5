#!/usr/bin/env python3
"""A program that lies where it is installed finds what it brings into the programs it records.

    installed_test.py --bin BUILD_DIR [unittest options]
"""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin=".")


class Installed(unittest.TestCase):
    def doctor(self, place):
        """What `culprit doctor` says of a copy in bin/ with its libraries in `place`, from bin/."""
        with tempfile.TemporaryDirectory(prefix="culprit-") as folder:
            os.makedirs(os.path.join(folder, "bin"))
            os.makedirs(os.path.join(folder, "bin", place), exist_ok=True)
            program = shutil.copy(os.path.join(ARGS.bin, "culprit"), os.path.join(folder, "bin"))
            libraries = glob.glob(os.path.join(ARGS.bin, "libculprit_*.so"))
            self.assertGreaterEqual(len(libraries), 2)
            for library in libraries:
                shutil.copy(library, os.path.join(folder, "bin", place))
            return subprocess.run([program, "doctor"], capture_output=True, text=True, check=False).stdout

    def test_libraries_are_found_beside_the_program_and_in_its_library_folders(self):
        for place in (".", "../lib/culprit", "../lib64/culprit"):
            said = self.doctor(place)
            self.assertIn("collector nvtx", said)
            for library in ("libculprit_agent.so", "libculprit_nvtx.so"):
                self.assertNotIn(library, said, place)

    def test_elsewhere_they_are_missing(self):
        said = self.doctor("../elsewhere")
        self.assertIn("libculprit_agent.so", said)
        self.assertIn("libculprit_nvtx.so", said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
