"""The scripts of the GitHub Action, fed with recorded events, against a stand-in for the service's API.

usage: test.py FOLDER-WITH-TALLYLINE      needs cc, git, bash, python3
"""

import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
SCRIPTS = os.path.join(ROOT, "packaging", "action")
OLD = "struct conn { long rx; int state; } conn;\n"
NEW = "struct conn { long rx; long tx[8]; int state; } conn;\n"
# two threads, each with a word of its own: on one line, or on two
THREADS = """
#include <pthread.h>
#include <stdlib.h>
struct { long mine, yours ALIGN; } both __attribute__((aligned(64)));
static long rounds;
static void *one(void *u) { for (long i = 0; i < rounds; i++) __atomic_fetch_add(&both.mine, 1, 0); return u; }
static void *two(void *u) { for (long i = 0; i < rounds; i++) __atomic_fetch_add(&both.yours, 1, 0); return u; }
int main(int argc, char **argv) {
    pthread_t a, b;
    rounds = argc > 1 ? atol(argv[1]) : 1L << 40;
    pthread_create(&a, 0, one, 0); pthread_create(&b, 0, two, 0);
    return pthread_join(a, 0) + pthread_join(b, 0);
}
"""
POLICY = '[[type]]\nname = "conn"\nmax-size = 64\n'


class Service(http.server.BaseHTTPRequestHandler):
    """Comments of one pull request, in pages, as GitHub's API has them."""

    comments, log, refuse = [], [], None

    def answer(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_all(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        Service.log.append((self.command, self.path))
        if self.headers["Authorization"] != "Bearer secret":
            return self.answer(401, {})
        if Service.refuse and self.command != "GET":
            return self.answer(Service.refuse, {"message": "Resource not accessible by integration"})
        if match := re.fullmatch(r"/repos/octo/server/issues/7/comments\?per_page=(\d+)&page=(\d+)", self.path):
            size, page = map(int, match.groups())
            return self.answer(200, Service.comments[(page - 1) * size : page * size])
        if self.path == "/repos/octo/server/issues/7/comments" and self.command == "POST":
            if len(body["body"]) > 65536:
                return self.answer(422, {"message": "body is too long"})
            return self.answer(201, Service.add(body["body"]))
        if (match := re.fullmatch(r"/repos/octo/server/issues/comments/(\d+)", self.path)) and self.command == "PATCH":
            found = [c for c in Service.comments if c["id"] == int(match[1])]
            found[0]["body"] = body["body"]
            return self.answer(200, found[0])
        self.answer(404, {})

    do_GET = do_POST = do_PATCH = handle_all

    def log_message(self, *words):
        pass

    @staticmethod
    def add(body, kind="Bot"):
        number = 100 + len(Service.comments)
        url = f"https://api.github.com/repos/octo/server/issues/comments/{number}"
        Service.comments.append({"id": number, "url": url, "body": body, "user": {"type": kind}})
        return Service.comments[-1]


class Action(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.repository = os.path.join(self.folder.name, "it's here")
        os.mkdir(self.repository)
        Service.comments, Service.log, Service.refuse = [], [], None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.git("init", "--quiet", "-b", "main")
        self.base = self.commit(OLD)
        self.head = self.commit(NEW)
        self.build("conn.o")
        self.write("layout.toml", POLICY)

    def git(self, *words):
        options = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *options, *words], cwd=self.repository, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.strip()

    def commit(self, source):
        self.write("conn.c", source)
        self.git("add", "conn.c")
        self.git("commit", "--quiet", "-m", "conn")
        return self.git("rev-parse", "HEAD")

    def write(self, name, text):
        with open(os.path.join(self.repository, name), "w") as file:
            file.write(text)

    def build(self, output):
        subprocess.run(["cc", "-g", "-c", "conn.c", "-o", output], cwd=self.repository, check=True)

    def run_script(self, script, event="pull_request", **inputs):
        """Runs a script as a runner does: returns its status, what it said, its outputs and its summary."""
        with open(os.path.join(HERE, "events", f"{event}.json")) as file:
            text = file.read().replace("@BASE@", self.base).replace("@HEAD@", self.head)
        path = lambda name: os.path.join(self.folder.name, name)
        with open(path("event.json"), "w") as file:
            file.write(text)
        for name in ("output", "summary", "path"):
            open(path(name), "w").close()
        environment = {
            "PATH": self.__class__.programs + os.pathsep + os.environ["PATH"],
            "HOME": self.folder.name,
            "RUNNER_TEMP": self.folder.name,
            "GITHUB_EVENT_PATH": path("event.json"),
            "GITHUB_OUTPUT": path("output"),
            "GITHUB_STEP_SUMMARY": path("summary"),
            "GITHUB_PATH": path("path"),
            "GITHUB_REPOSITORY": "octo/server",
            "GITHUB_API_URL": f"http://127.0.0.1:{self.server.server_address[1]}",
            "GITHUB_SERVER_URL": "https://github.invalid",
        }
        environment.update({f"INPUT_{name.upper()}": value for name, value in self.inputs(script, inputs).items()})
        command = [os.path.join(SCRIPTS, script)]
        if script.endswith(".py"):
            command.insert(0, sys.executable)
        done = subprocess.run(command, cwd=self.repository, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        read = lambda name: open(path(name), encoding="utf-8").read()
        outputs = dict(line.split("=", 1) for line in read("output").splitlines())
        return done.returncode, done.stdout, outputs, read("summary")

    def inputs(self, script, given):
        """The inputs of action.yml with their defaults, those that are given in front."""
        wanted = {
            "check": {"file": "conn.o", "check": "auto", "policy": "layout.toml", "baseline": "", "fail_on_findings": "true", "path_prefix_map": "", "sarif": ""},
            "diff": {"file": "conn.o", "diff": "auto", "base": "", "base_url": "", "base_sha256": "", "base_build": "", "base_file": "", "types": "", "sharing_check": "false"},
            "sharing": {"file": "./threads", "base": "", "sharing_check": "true", "sharing_arguments": "", "sharing_threshold": "1.0", "fail_on_findings": "true", "path_prefix_map": ""},
            "comment.py": {"table": "", "changed": "true", "comment_key": "layout", "token": "secret"},
            "install": {"version": "0.1.0", "archive": "", "archive_sha256": ""},
        }[script]
        return {**wanted, **given}

    def test_inputs_of_scripts_are_those_of_the_action(self):
        text = open(os.path.join(ROOT, "action.yml")).read()
        declared = set(re.findall(r"^  ([a-z0-9-]+):\n    description:", text.split("\noutputs:")[0], re.M))
        self.assertGreater(len(declared), 15)
        used = set(re.findall(r"\$\{\{ inputs\.([a-z0-9-]+) \}\}", text)) | set(re.findall(r"inputs\.([a-z0-9-]+) ==", text))
        self.assertEqual(declared, used)
        for script in ("check", "diff", "sharing", "comment.py", "install"):
            source = open(os.path.join(SCRIPTS, script)).read()
            for name in set(re.findall(r"INPUT_([A-Z0-9_]+)", source)):
                self.assertIn(f"INPUT_{name}:", text, script)
        # an input in a command line would be run as a part of it
        for line in re.findall(r"^ +run: .*$", text, re.M):
            self.assertNotIn("${{", line)

    def test_findings_become_annotations_and_fail(self):
        status, said, outputs, summary = self.run_script("check")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^::error file=conn\.c,line=1,title=layout%3A max-size::conn: it has 80 bytes, 64 allowed$")
        self.assertEqual(outputs, {"findings": "1"})
        self.assertIn("[max-size]", summary)

    def test_findings_may_be_told_not_to_fail(self):
        status, said, outputs, _ = self.run_script("check", fail_on_findings="false", sarif="out.sarif", path_prefix_map=f"{self.repository}=src\n")
        self.assertEqual((status, outputs["findings"]), (0, "1"), said)
        self.assertIn("file=src/conn.c", said)
        self.assertEqual(json.load(open(os.path.join(self.repository, "out.sarif")))["version"], "2.1.0")

    def test_a_baseline_lets_findings_stay(self):
        with open(os.path.join(self.repository, "baseline.json"), "w") as out:
            subprocess.run([os.path.join(self.programs, "tallyline"), "check", "conn.o", "--format", "json"], cwd=self.repository, stdout=out)
        status, said, outputs, _ = self.run_script("check", baseline="baseline.json")
        self.assertEqual((status, outputs["findings"]), (0, "0"), said)

    def test_a_check_without_policy_or_file(self):
        os.remove(os.path.join(self.repository, "layout.toml"))
        self.assertEqual(self.run_script("check")[0], 0)
        status, said, _, _ = self.run_script("check", check="true")
        self.assertEqual(status, 2)
        self.assertIn("::error title=tallyline::", said)
        self.write("layout.toml", POLICY)
        self.assertEqual(self.run_script("check", file="nonesuch.o")[0], 2)

    def test_base_is_built_in_a_checkout_of_the_base(self):
        for event in ("pull_request", "push"):
            status, said, outputs, summary = self.run_script("diff", event, base_build="cc -g -c conn.c -o conn.o")
            self.assertEqual((status, outputs["changed"]), (0, "true"), said)
            self.assertIn("16 → 80", open(outputs["table"]).read())
            self.assertIn("`conn`", summary)
        self.assertEqual(self.git("rev-parse", "HEAD"), self.head)
        self.assertFalse(os.path.exists("/tmp/pwned"))

    def test_events_without_a_base_compare_nothing(self):
        for event in ("push_new_branch", "workflow_dispatch"):
            status, said, outputs, _ = self.run_script("diff", event, base_build="exit 3")
            self.assertEqual((status, outputs), (0, {}), said)
            self.assertIn("no base", said)
        self.assertEqual(self.run_script("diff")[::2], (0, {}))
        self.assertEqual(self.run_script("diff", diff="true")[0], 2)

    def test_base_is_downloaded_and_its_sum_checked(self):
        self.git("checkout", "--quiet", self.base)
        self.build("base.o")
        path = os.path.join(self.repository, "base.o")
        digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
        from urllib.request import pathname2url
        url = "file://" + pathname2url(path)
        status, said, outputs, _ = self.run_script("diff", base_url=url, base_sha256=digest, types="conn")
        self.assertEqual((status, outputs.get("changed")), (0, "true"), said)
        status, said, _, _ = self.run_script("diff", base_url=url, base_sha256="0" * 64)
        self.assertEqual(status, 2)
        self.assertIn(f"the checksum is {digest}", said)

    def threads(self, name, align):
        self.write("threads.c", THREADS)
        command = ["cc", "-O1", "-g", "-pthread", f"-DALIGN={align}", "threads.c", "-o", name]
        subprocess.run(command, cwd=self.repository, check=True)

    def test_lines_that_threads_share_now_are_annotations_and_fail(self):
        self.threads("apart", "__attribute__((aligned(64)))")
        self.threads("threads", "")
        status, said, outputs, _ = self.run_script("diff", diff="false", sharing_check="true", base="./apart")
        self.assertEqual((status, outputs), (0, {"base": "./apart"}), said)
        given = {"base": "./apart", "sharing_arguments": "3000\n"}
        status, said, outputs, summary = self.run_script("sharing", **given)
        self.assertEqual((status, outputs), (1, {"shared-lines": "1"}), said)
        self.assertRegex(said, r"(?m)^::error file=threads\.c,line=[67],title=shared cache line::both\.(mine|yours), ")
        self.assertIn("| fields on the line |", summary)
        self.assertEqual(self.run_script("sharing", **given, fail_on_findings="false")[0], 0)
        status, said, outputs, _ = self.run_script("sharing", **{**given, "file": "./apart"})
        self.assertEqual((status, outputs), (0, {"shared-lines": "0"}), said)
        # without a base, or a program
        self.assertEqual(self.run_script("sharing")[::2], (0, {}))
        self.assertEqual(self.run_script("sharing", base="conn.o")[0], 2)

    def test_a_build_that_fails_says_why(self):
        status, said, _, _ = self.run_script("diff", base_build="echo no compiler here >&2; exit 3")
        self.assertEqual(status, 2)
        self.assertIn("no compiler here", said)

    def comment(self, table, changed="true", event="pull_request", **inputs):
        self.write("table.md", table)
        return self.run_script("comment.py", event, table="table.md", changed=changed, **inputs)

    def test_one_comment_is_added_and_then_updated(self):
        # of people, and of another use of the action, on more than one page
        for number in range(120):
            Service.add(f"<!-- tallyline: layout -->\nquoted {number}", kind="User")
        Service.add("<!-- tallyline: other -->\n")
        status, said, _, _ = self.comment("| first |\n")
        self.assertEqual(status, 0, said)
        self.assertEqual(len(Service.comments), 122)
        self.assertIn("| first |", Service.comments[-1]["body"])
        self.assertIn(self.head[:12], Service.comments[-1]["body"])
        self.comment("| second |\n")
        self.comment("No differences in the layout of 3 types.\n", changed="false")
        self.assertEqual(len(Service.comments), 122)
        self.assertIn("No differences", Service.comments[-1]["body"])
        self.assertTrue(all("quoted" in comment["body"] for comment in Service.comments[:120]))

    def test_no_comment_without_differences_or_pull_request(self):
        self.comment("No differences\n", changed="false")
        self.assertEqual(Service.comments, [])
        for event in ("push", "workflow_dispatch"):
            status, said, _, _ = self.comment("| table |\n", event=event)
            self.assertEqual((status, len(Service.comments)), (0, 0), said)

    def test_a_token_that_may_not_write_is_no_failure(self):
        Service.refuse = 403
        status, said, _, _ = self.comment("| table |\n")
        self.assertEqual(status, 0, said)
        self.assertIn("::notice", said)
        self.assertEqual(self.comment("| table |\n", token="wrong")[0], 0)
        Service.refuse = 500
        self.assertEqual(self.comment("| table |\n")[0], 1)

    def test_a_long_table_is_cut_between_rows(self):
        self.comment("".join(f"| type_{number:06} | 1 → 2 |\n" for number in range(5000)))
        body = Service.comments[0]["body"]
        self.assertLess(len(body), 65536)
        self.assertIn("The rest is in the job's summary.", body)
        self.assertTrue(all(line.endswith("|") for line in body.splitlines() if line.startswith("| type")))

    def test_install_takes_a_tarball_and_checks_its_sum(self):
        tree = os.path.join(self.folder.name, "tallyline-0.1.0-x", "bin")
        os.makedirs(tree)
        with open(os.path.join(tree, "tallyline"), "w") as file:
            file.write("#!/bin/sh\necho tallyline 0.1.0\n")
        os.chmod(os.path.join(tree, "tallyline"), 0o755)
        archive = os.path.join(self.folder.name, "t.tar.xz")
        subprocess.run(["tar", "-C", self.folder.name, "-cJf", archive, "tallyline-0.1.0-x"], check=True)
        digest = hashlib.sha256(open(archive, "rb").read()).hexdigest()
        status, said, _, _ = self.run_script("install", archive=archive, archive_sha256=digest)
        self.assertEqual(status, 0, said)
        folder = open(os.path.join(self.folder.name, "path")).read().strip()
        self.assertTrue(os.access(os.path.join(folder, "tallyline"), os.X_OK))
        self.assertEqual(self.run_script("install", archive=archive, archive_sha256="0" * 64)[0], 1)
        self.assertEqual(self.run_script("install", archive="https://example.invalid/t.tar.xz")[0], 1)
        self.assertEqual(self.run_script("install", archive="nonesuch")[0], 1)


if __name__ == "__main__":
    Action.programs = os.path.abspath(sys.argv.pop(1))
    unittest.main(warnings="ignore")
