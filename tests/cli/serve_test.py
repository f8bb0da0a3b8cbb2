#!/usr/bin/env python3
"""`foreshard serve`: what its page asks and gets, warm against cold, and what strangers cannot do to it.

    serve_test.py PROGRAM SOURCE BUILD [Class.test...]
"""

import http.client
import json
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
LARGE = str(SOURCE / "configs/studies/gpt3-175b-a100-1024.yaml")
SMALL = str(SOURCE / "configs/studies/gpt-1.7b-a100-8.yaml")
MIB = 1 << 20


class Served:
    """A server of a study; its process ends with the block."""

    def __init__(self, *words, **options):
        self.process = subprocess.Popen([PROGRAM, "serve", *words], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        self.link = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.link)
        self.port, self.path = parts.port, parts.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def request(self, method, path, body=None, headers=(), timeout=60):
        """Status and text of a request to a path: after the token, or all of it where it begins with a slash."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        connection.request(method, path if path.startswith("/") else self.path + path, body, dict(headers))
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def ask(self, path, settings=None, **more):
        """The answer to settings of a page."""
        status, text = self.request("POST", path, json.dumps({"set": settings or {}, **more}),
                                    {"Content-Type": "application/json"})
        assert status == 200, text
        return json.loads(text)

    def raw(self, data, timeout=5):
        """What comes back for bytes that end, until the connection does."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as plug:
            plug.sendall(data)
            plug.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := plug.recv(1 << 16):
                answer += piece
        return answer

    def used(self):
        """Processor time so far, in ticks of 10 ms."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def memory(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize()


def run(*words):
    return subprocess.run([PROGRAM, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def figures(answer):
    return {one["name"]: one["value"] for one in answer["figures"]}


class Slow(threading.Thread):
    """Sends a byte of a request now and then, beside the other tests."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = None

    def run(self):
        with Served(SMALL) as server, socket.create_connection(("127.0.0.1", server.port), timeout=0.5) as plug:
            begun = time.monotonic()
            try:
                while time.monotonic() - begun < 20:
                    plug.sendall(b"G")
                    try:
                        if plug.recv(1000) == b"":
                            break
                    except TimeoutError:
                        continue
            except OSError:
                pass
            self.seconds = time.monotonic() - begun


SLOW = Slow()


def setUpModule():
    SLOW.start()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(SMALL)
        cls.addClassCleanup(cls.server.__exit__)

    def test_answers_are_those_of_simulate(self):
        changes = {"strategy.micro_batch": "1", "strategy.zero_stage": "1"}
        words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
        told = json.loads(run("simulate", SMALL, *words, "--format", "json").stdout)
        answer = self.server.ask("simulate", changes)
        self.assertEqual(figures(answer)["step"], told["step"]["time_s"])
        self.assertEqual(figures(answer)["peak memory"], told["memory"]["peak_bytes"])
        self.assertEqual(answer["values"]["strategy.micro_batch"], "1")
        self.assertIn("data-name=", answer["html"])  # marks of pictures
        self.assertEqual(answer, self.server.ask("simulate", changes))

    def test_pictures_need_the_time_line(self):
        html = self.server.ask("pictures")["html"]
        for title in ("Passes", "Memory", "Communication"):
            self.assertIn(title, html)
        self.assertNotIn("<script", html)

    def test_data_parallel_fills_the_cluster(self):
        changes = {"strategy.tensor_parallel": "4"}
        answer = self.server.ask("simulate", changes, fill=True)
        self.assertEqual(answer["values"]["strategy.data_parallel"], "1")
        self.assertIn("strategy.data_parallel=1", self.server.ask("command", changes, fill=True)["text"])

    def test_the_program_says_what_is_wrong(self):
        changes = {"strategy.micro_batch": "7"}
        words = run("simulate", SMALL, "--set", "strategy.micro_batch=7").stderr
        self.assertEqual(self.server.ask("simulate", changes)["fault"].strip(), words.strip())

    def test_what_does_not_fit_is_shown(self):
        answer = self.server.ask("simulate", {"strategy.micro_batch": "64", "strategy.global_batch": "1024"}, fill=True)
        self.assertIs(answer["fits"], False)
        self.assertIn("does not fit", answer["html"])

    def test_the_yaml_is_the_study(self):
        changes = {"strategy.micro_batch": "1", "cluster.nodes": "2"}
        text = self.server.ask("yaml", changes, fill=True)["text"]
        step = figures(self.server.ask("simulate", changes, fill=True))["step"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "study.yaml")
            path.write_text(text)
            told = json.loads(run("simulate", str(path), "--format", "json").stdout)
        self.assertEqual(told["step"]["time_s"], step)

    def test_settings_name_no_files(self):
        for key, value in (("strategy.framework", "/etc/passwd"), ("strategy.schedule_file", "/etc/passwd"),
                           ("strategy.extends", "/etc/passwd"), ("strategy", "{extends: /etc/passwd}"),
                           ("strategy.optimizer", "{extends: /etc/passwd}"), ("cluster.node", "../../../etc/passwd"),
                           ("cluster", "/etc/passwd"), ("model", "/etc/passwd"), ("huggingface.config", "/etc"),
                           ("strategy.micro_batch", "{extends: /etc/passwd}")):
            with self.subTest(key=key):
                fault = self.server.ask("simulate", {key: value})["fault"]
                self.assertNotIn("root:", fault)
                self.assertIn(key, fault)

    def test_a_search_tells_its_progress_and_what_it_found(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        connection.request("POST", self.server.path + "search", json.dumps({"set": {"strategy.global_batch": "64"}}),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        self.assertEqual(response.headers["Content-Type"], "text/event-stream")
        events = [dict(line.split(": ", 1) for line in event.split("\n"))
                  for event in response.read().decode().split("\n\n") if event]
        self.assertEqual({one["event"] for one in events[:-1]}, {"progress"})
        self.assertEqual(events[-1]["event"], "done")
        found = json.loads(events[-1]["data"])
        best = {key: value for key, value in found["strategies"][0].items() if value is not None}
        best["strategy.global_batch"] = "64"
        fastest = figures(self.server.ask("simulate", best))["step"]
        self.assertLess(fastest, figures(self.server.ask("simulate", {"strategy.global_batch": "64"}))["step"])

    def test_a_changed_file_is_what_the_study_has(self):
        """Found strategies and controls leave out what the file says now, not when the server began."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "study.yaml")
            text = self.server.ask("yaml")["text"]
            path.write_text(text)
            with Served(str(path)) as server:
                own = server.ask("simulate")["own"]["strategy.micro_batch"]
                path.write_text(text.replace(f"micro_batch: {own}\n", "micro_batch: 1\n"))
                self.assertEqual(server.ask("simulate")["own"]["strategy.micro_batch"], "1")

    def test_a_search_ends_with_its_page(self):
        with Served(LARGE) as server:
            body = json.dumps({"set": {}}).encode()
            with socket.create_connection(("127.0.0.1", server.port)) as plug:
                plug.sendall(f"POST {server.path}search HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: "
                             f"application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                plug.recv(1 << 16)
            self.wait_until_idle(server)

    def test_a_change_ends_with_its_page(self):
        with Served(LARGE) as server:
            server.ask("pictures")
            before = server.used()
            server.ask("pictures")
            whole = server.used() - before
            begun = server.used()
            with self.assertRaises(TimeoutError):
                server.request("POST", "pictures", json.dumps({"set": {}}), {"Content-Type": "application/json"},
                               timeout=0.02)
            self.wait_until_idle(server)
            self.assertLess(server.used() - begun, whole / 2)

    def wait_until_idle(self, server):
        """Until the process has used no processor for a while."""
        end = time.monotonic() + 20
        before = server.used()
        while time.monotonic() < end:
            time.sleep(0.3)
            if server.used() == before:
                return
            before = server.used()
        self.fail("it still works for a page that is gone")


class Warm(unittest.TestCase):
    def test_a_change_takes_half_of_a_cold_simulate(self):
        """Of controls that somebody looks at, the neighbours are known before they are chosen."""
        with Served(LARGE) as server:
            server.ask("simulate")
            server.ask("ahead", {"strategy.micro_batch": "2"})
            foreseen = self.over_cold(server, "2")
            unforeseen = self.over_cold(server, "4")
            print(f"warm over cold: foreseen {foreseen:.3f}, unforeseen {unforeseen:.2f}")
            self.assertLess(foreseen, 0.5)

    def over_cold(self, server, micro_batch):
        """The time of an answer over that of a simulate."""
        begun = time.monotonic()
        answer = server.ask("simulate", {"strategy.micro_batch": micro_batch})
        warm = time.monotonic() - begun
        begun = time.monotonic()
        told = run("simulate", LARGE, "--set", f"strategy.micro_batch={micro_batch}", "--format", "json")
        cold = time.monotonic() - begun
        self.assertEqual(figures(answer)["step"], json.loads(told.stdout)["step"]["time_s"])
        return warm / cold

    def test_a_question_is_not_held_up_by_one_ahead(self):
        with Served(LARGE) as server:
            server.ask("simulate")
            ahead = threading.Thread(target=server.ask, args=("ahead", {"strategy.recompute": "none"}))
            ahead.start()
            time.sleep(0.02)
            self.assertIn("figures", server.ask("simulate", {"strategy.micro_batch": "8"}))
            ahead.join()


class Strangers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(SMALL)
        cls.addClassCleanup(cls.server.__exit__)

    def tearDown(self):
        self.assertIsNone(self.server.process.poll())
        self.assertIn("figures", self.server.ask("simulate"))

    def refused(self, status, word, method, path, body=None, headers=()):
        got, text = self.server.request(method, path, body, headers)
        self.assertEqual(got, status, text)
        self.assertIn(word, text)
        self.assertEqual(text.count("\n"), 1, text)

    def test_the_page_is_strict(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
        connection.request("GET", self.server.path)
        response = connection.getresponse()
        policy = response.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'; script-src 'self';", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertEqual(response.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(response.headers["Referrer-Policy"], "no-referrer")
        self.assertLess(len(self.server.request("GET", "serve.js")[1]), 60_000)

    def test_the_token_is_needed(self):
        for path in ("/", "/simulate", "/" + "0" * 32 + "/", self.server.path[:-1], self.server.path[:-2] + "/"):
            self.refused(403, "token", "GET", path)

    def test_another_host_is_refused(self):
        for host in ("example.org", f"example.org:{self.server.port}", "127.0.0.1", "127.0.0.1:1", ""):
            self.refused(403, "127.0.0.1", "GET", "", headers={"Host": host})
        self.refused(403, "other sites", "GET", "", headers={"Origin": "http://example.org"})
        self.assertEqual(self.server.request("GET", "", headers={"Host": f"localhost:{self.server.port}"})[0], 200)

    def test_no_path_is_a_file(self):
        for path in ("../../../../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "page.css", "/etc/passwd", "serve.js/.."):
            status, text = self.server.request("GET", path)
            self.assertIn(status, (403, 404))
            self.assertNotIn("root:", text)

    def test_bodies_have_a_limit(self):
        kind = {"Content-Type": "application/json"}
        self.refused(413, "1 MiB", "POST", "simulate", b"x" * (2 * MIB), kind)
        self.refused(411, "Content-Length", "POST", "simulate", iter([b"{}"]), {**kind, "Transfer-Encoding": "chunked"})
        self.refused(411, "as it is", "POST", "simulate", b"x", {**kind, "Content-Encoding": "gzip"})
        self.refused(415, "application/json", "POST", "simulate", b"{}", {"Content-Type": "text/plain"})
        self.refused(405, "GET and POST", "PUT", "simulate", b"{}", kind)
        self.assertIn("no JSON", json.loads(self.server.request("POST", "simulate", b"{" * MIB, kind)[1])["fault"])
        many = json.dumps({"set": {f"strategy.{i}": "1" for i in range(1000)}})
        self.assertIn("at most 100", json.loads(self.server.request("POST", "simulate", many, kind)[1])["fault"])

    def test_garbage_is_answered_or_closed(self):
        host = f"Host: 127.0.0.1:{self.server.port}\r\n"
        line = f"GET {self.server.path} HTTP/1.1\r\n{host}"
        for data in (b"\0" * 100, b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01" + b"x" * 200,
                     f"GET /{'a' * 100_000} HTTP/1.1\r\n{host}\r\n".encode(),
                     f"{line}{'X: ' + 'y' * 9000}\r\n\r\n".encode(),
                     f"{line}{''.join(f'X{i}: y' + chr(13) + chr(10) for i in range(5000))}\r\n".encode(),
                     f"{line}Range: bytes={'0-1,' * 1900}0-1\r\n\r\n".encode(),
                     f"{line}Range: bytes={'9' * 8000}-\r\n\r\n".encode()):
            answer = self.server.raw(data, timeout=15)
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 "), answer[:80])

    def test_ten_thousand_connections(self):
        """Some end at once, some send garbage, some stay and say nothing; the page is still answered soon."""
        before = self.server.memory()
        idle = []
        self.addCleanup(lambda: [plug.close() for plug in idle])
        for i in range(10_000):
            plug = socket.socket()
            plug.setblocking(False)
            plug.connect_ex(("127.0.0.1", self.server.port))
            if i % 20 == 0:
                idle.append(plug)
                continue
            if i % 3 == 0:
                try:
                    plug.send(b"GET / HTTP/1.1\r\n")
                except OSError:
                    pass
            plug.close()
        begun = time.monotonic()
        self.assertIn("figures", self.server.ask("simulate"))
        self.assertLess(time.monotonic() - begun, 10)
        self.assertLess(self.server.memory() - before, 50 * MIB)


class Command(unittest.TestCase):
    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = run("serve", SMALL, "--port", str(port))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(f"port {port}", done.stderr)
        self.assertIn("in use", done.stderr)
        self.assertIn("--port", done.stderr)

    def test_a_port_that_is_none(self):
        done = run("serve", SMALL, "--port", "65536")
        self.assertEqual((done.returncode, done.stdout), (2, ""))

    def test_a_study_that_is_wrong(self):
        done = run("serve", SMALL, "--set", "strategy.micro_batch=7")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("micro_batch", done.stderr)

    def test_a_given_port(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with Served(SMALL, "--port", str(port)) as server:
            self.assertEqual(server.port, port)
            self.assertRegex(server.link, rf"^http://127\.0\.0\.1:{port}/[0-9a-f]{{32}}/$")

    def test_a_study_of_parts(self):
        with Served("--cluster", "two-dgx-a100", "--model", "gpt-1.7b", "--strategy",
                    "{tensor_parallel: 2, data_parallel: 8, global_batch: 32}") as server:
            self.assertIn("figures", server.ask("simulate", {"strategy.tensor_parallel": "4"}, fill=True))
            self.assertIn("--cluster two-dgx-a100", server.ask("command")["text"])

    def test_markup_in_names_is_text(self):
        with Served(SMALL, "--set", "model.name=<img src=x onerror=alert(1)>") as server:
            html = server.ask("simulate")["html"]
            self.assertNotIn("<img", html)
            self.assertIn("&lt;img", html)

    def test_a_study_from_stdin(self):
        done = run("serve", "-")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("stdin", done.stderr)


class WornOut(unittest.TestCase):
    def test_slow_ones_are_sent_away(self):
        SLOW.join(25)
        self.assertTrue(SLOW.seconds and 9 < SLOW.seconds < 15, SLOW.seconds)


if __name__ == "__main__":
    with Served(SMALL) as asked:
        if not asked.link:
            print("skipped: this build has no server")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
