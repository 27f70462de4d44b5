"""A page in headless Chromium as somebody uses it who has keys only: what they do, and what is there then.

DevTools' protocol over two pipes, in which every message ends with a zero byte.
"""

import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
TEXTS = {"Enter": "\r"}


class Page:
    """An opened page; `said` is all that came on its console."""

    def __init__(self, program, address, limit_s=60):
        self.limit_s, self.said, self.last, self.read = limit_s, [], 0, b""
        self.profile = tempfile.TemporaryDirectory(prefix="culprit-chromium-", ignore_cleanup_errors=True)
        its_in, self.to_it = os.pipe()
        self.from_it, its_out = os.pipe()

        def at_three_and_four():
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (its_in, its_out)]
            for place, fd in zip((3, 4), high):
                os.dup2(fd, place)
                os.close(fd)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={self.profile.name}",
             "--window-size=1240,900", "--force-prefers-reduced-motion", "--remote-debugging-pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=at_three_and_four)
        os.close(its_in)
        os.close(its_out)
        try:
            self.session = None
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Runtime", "Log", "Page"):
                self.call(f"{domain}.enable")
            self.call("Emulation.setFocusEmulationEnabled", enabled=True)
            self.call("Page.navigate", url=address)
            self.until("document.querySelector('main')?.getAttribute('aria-busy') === 'false'")
        except BaseException:
            self.close()
            raise

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_it)
        os.close(self.from_it)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def message(self, deadline):
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.from_it], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError(f"the browser says nothing for {self.limit_s} s")
            more = os.read(self.from_it, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.read += more
        text, self.read = self.read.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        words = {"id": self.last, "method": method, "params": parameters}
        if self.session is not None:
            words["sessionId"] = self.session
        out = json.dumps(words).encode() + b"\0"
        while out:
            out = out[os.write(self.to_it, out):]
        deadline = time.monotonic() + self.limit_s
        while True:
            message = self.message(deadline)
            if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(message["params"])
            if message.get("id") == self.last:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]

    def value(self, expression):
        """Of an expression of the page's own language."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression):
        deadline = time.monotonic() + self.limit_s
        while not (value := self.value(expression)):
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {expression}")
            time.sleep(0.05)
        return value

    def key(self, key):
        code = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper()))}
        text = TEXTS.get(key, key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **code, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def tab_to(self, selector, most=200):
        """Presses Tab until that has the focus."""
        for _ in range(most):
            self.key("Tab")
            if self.value(f"document.activeElement.matches({json.dumps(selector)})"):
                return
        raise AssertionError(f"{most} times Tab do not lead to {selector}")
