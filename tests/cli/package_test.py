#!/usr/bin/env python3
"""The Debian package of this build: what is in it, and that dpkg installs it below a folder and removes all of it.

    package_test.py --bin BUILD --source ROOT [unittest options]
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = argparse.Namespace(bin=".", source=".")


class Package(unittest.TestCase):
    """One build of the package for all tests in it: packing takes most of the time."""

    def setUp(self):
        for tool in ("cpack", "dpkg", "dpkg-deb", "dpkg-shlibdeps"):
            if not shutil.which(tool):
                self.skipTest(f"no {tool}")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name
        # Packed fast, not small.
        self.run_command("cpack", "-G", "DEB", "--config", os.path.join(ARGS.bin, "CPackConfig.cmake"), "-B", self.root,
                         "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=zstd", cwd=ARGS.bin)
        self.package = glob.glob(self.root + "/*.deb")[0]

    def run_command(self, *command, cwd=None):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd or self.root)
        self.assertEqual(done.returncode, 0, " ".join(command) + "\n" + done.stdout + done.stderr)
        return done.stdout

    def check_control(self):
        field = {f: self.run_command("dpkg-deb", "-f", self.package, f).strip()
                 for f in ("Package", "Version", "Architecture", "Depends", "Maintainer", "Description")}
        self.assertEqual(field["Package"], "culprit")
        program = self.run_command(os.path.join(ARGS.bin, "culprit"), "--version").split()
        self.assertEqual(field["Version"], program[1])
        for needed in ("libc6 (>= ", "libstdc++6 (>= ", "libsqlite3-0 (>= ", "libbpf1 (>= "):
            self.assertIn(needed, field["Depends"])
        self.assertIn("<", field["Maintainer"])
        self.assertRegex(os.path.basename(self.package), r"^culprit_[0-9.]+_[a-z0-9]+\.deb$")

    def check_files(self):
        modes = {}
        for line in self.run_command("dpkg-deb", "-c", self.package).splitlines():
            mode, owner, _, _, _, path = line.split(None, 5)
            self.assertEqual(owner, "root/root", line)
            modes[path.split(" -> ")[0].lstrip(".")] = mode
        for path, mode in modes.items():
            wanted = ("drwxr-xr-x" if path.endswith("/") else "lrwxrwxrwx" if mode[0] == "l" else
                      "-rwxr-xr-x" if path.startswith("/usr/bin/") else "-rw-r--r--")
            self.assertEqual(mode, wanted, path)
            self.assertNotIn("/local/", path)
        for path in ("/usr/bin/culprit", "/usr/lib/culprit/libculprit_nvtx.so", "/usr/lib/culprit/libculprit_agent.so", "/usr/lib/libculprit.so", "/usr/lib/libculprit.a",
                     "/usr/include/culprit/load.h", "/usr/include/culprit_annotate.h", "/usr/lib/pkgconfig/culprit.pc",
                     "/usr/lib/cmake/culprit/culprit-config.cmake", "/usr/share/man/man1/culprit.1.gz",
                     "/usr/share/man/man1/culprit-top.1.gz", "/usr/share/bash-completion/completions/culprit",
                     "/usr/share/zsh/vendor-completions/_culprit", "/usr/share/fish/vendor_completions.d/culprit.fish",
                     "/usr/share/doc/culprit/copyright", "/usr/share/doc/culprit/changelog.gz"):
            self.assertIn(path, modes)
        pages = [p for p in modes if p.startswith("/usr/share/man/man1/") and not p.endswith("/")]
        self.assertTrue(all(p.endswith(".1.gz") for p in pages), pages)
        self.assertFalse([p for p in modes if re.search(r"texts|tracegen|test|/build", p)])

    def check_installed_and_removed(self):
        target = os.path.join(self.root, "target")
        for folder in ("info", "updates", "triggers"):
            os.makedirs(os.path.join(target, "var/lib/dpkg", folder))
        for name in ("status", "available"):
            open(os.path.join(target, "var/lib/dpkg", name), "w", encoding="utf-8").close()
        as_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
        if as_root and subprocess.run([*as_root, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("neither root nor user namespaces")
        dpkg = [*as_root, "dpkg", "--root=" + target, "--log=/dev/null", "--force-depends", "--force-script-chrootless"]
        self.run_command(*dpkg, "--install", self.package)
        program = os.path.join(target, "usr/bin/culprit")
        self.assertRegex(self.run_command(program, "--version"), r"^culprit [0-9.]+\n$")
        self.run_command(os.path.join(ARGS.bin, "culprit-tracegen"), "-q", "--steps", "3", "-o", "run.json")
        self.assertIn("flash_fwd", self.run_command(program, "top", "run.json"))
        self.run_command(*dpkg, "--purge", "culprit")
        left = [os.path.join(at, name) for at, _, names in os.walk(target) for name in names]
        self.assertEqual([path for path in left if "/var/lib/dpkg/" not in path], [])
        self.assertFalse(os.path.exists(os.path.join(target, "usr")))

    def test_is_complete_and_comes_and_goes_without_a_trace(self):
        self.check_control()
        self.check_files()
        self.check_installed_and_removed()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--source", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
