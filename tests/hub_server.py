"""A small Hugging Face Hub on this machine: what downloads, pushes and errors need.

As the real one it keeps `.safetensors` by their sha256 and other files as git does, and
makes a revision of each commit.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading

TOKEN = "hf_secret"


class Hub:
    """The models of a server, and how it answers.

    Attributes:
        models: dict of `user/name` to a dict of `private` and of `revisions`, a list of
            tuples of a commit and a dict of file name to bytes.
        uploads: dict of sha256 to the bytes that were sent for it.
        requests: list of str, method and path of each request.
        status: int. With what it answers everything, if not None.
    """

    def __init__(self):
        self.models, self.uploads, self.requests, self.status = {}, {}, [], None

    def add(self, model, files):
        """Commits files to a model; returns the commit."""
        held = self.models.setdefault(model, {"private": False, "revisions": []})
        before = held["revisions"][-1][1] if held["revisions"] else {}
        files = {**before, **files}
        text = repr([model, len(held["revisions"]), sorted(files)])
        commit = hashlib.sha1(text.encode()).hexdigest()
        held["revisions"].append((commit, files))
        return commit

    def files(self, model, revision="main"):
        """Commit and files of a revision, or None."""
        revisions = self.models[model]["revisions"]
        if revision == "main":
            return revisions[-1]
        return next((one for one in revisions if one[0] == revision), None)


@contextlib.contextmanager
def serving():
    """Gives a `Hub` and its address, such as `http://127.0.0.1:1234`."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def point_to(monkeypatch, address, cache):
    """Has `huggingface_hub`, which read its environment before, use a server."""
    from huggingface_hub import constants

    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def _is_large(path):
    return path.endswith(".safetensors")


class _Handler(http.server.BaseHTTPRequestHandler):
    hub = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self._begin()
        if path is None:
            return
        found = re.fullmatch(r"/(?:api/models/)?([^/]+/[^/]+)(?:/(.*))?", path)
        model, rest = found[1], found[2] or "revision/main"
        held = self.hub.models.get(model)
        if held is None or (held["private"] and not self._is_logged_in()):
            self._fail(404, "RepoNotFound")
            return
        what, revision, *more = rest.split("/", 2)
        revision = self.hub.files(model, revision)
        if revision is None:
            self._fail(404, "RevisionNotFound")
            return
        commit, files = revision
        if what == "revision":
            self._answer({"id": model, "sha": commit, "private": held["private"]})
        elif what == "tree":
            self._answer([self._listed(name, files[name]) for name in sorted(files)])
        else:
            self._send_file(commit, more[0], files[more[0]])

    def do_POST(self):
        path = self._begin()
        if path is None:
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path == "/api/validate-yaml":
            self._answer({"warnings": [], "errors": []})
        elif not self._is_logged_in():
            self._fail(401, None)
        elif path == "/api/repos/create":
            asked = json.loads(body)
            model = f"{asked['organization']}/{asked['name']}"
            is_new = model not in self.hub.models
            if is_new:
                self.hub.add(model, {".gitattributes": b"*.safetensors filter=lfs\n"})
                private = asked.get("visibility") == "private"
                self.hub.models[model]["private"] = private
            self._answer(
                {"url": f"http://{self.headers['Host']}/{model}"},
                200 if is_new else 409,
            )
        elif "/preupload/" in path:
            modes = {True: "lfs", False: "regular"}
            files = [
                {"path": name, "uploadMode": modes[_is_large(name)]}
                for name in (file["path"] for file in json.loads(body)["files"])
            ]
            self._answer({"files": [{**one, "shouldIgnore": False} for one in files]})
        elif path.endswith("/info/lfs/objects/batch"):
            place = f"http://{self.headers['Host']}/lfs/"
            objects = [
                {**one, "actions": {"upload": {"href": place + one["oid"]}}}
                for one in json.loads(body)["objects"]
            ]
            self._answer({"transfer": "basic", "objects": objects})
        else:
            self._commit(path, [json.loads(line) for line in body.splitlines()])

    def do_PUT(self):
        path = self._begin()
        if path is None:
            return
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self.hub.uploads[path.rpartition("/")[2]] = sent
        self._answer({})

    def _commit(self, path, lines):
        (model,) = re.fullmatch(r"/api/models/(.+)/commit/main", path).groups()
        files = {}
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "lfsFile":
                files[value["path"]] = self.hub.uploads[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        commit = self.hub.add(model, files)
        url = f"http://{self.headers['Host']}/{model}/commit/{commit}"
        self._answer({"commitOid": commit, "commitUrl": url})

    def _begin(self):
        """The path of a request; None if it has its answer."""
        path = self.path.partition("?")[0]
        self.hub.requests.append(f"{self.command} {path}")
        if self.hub.status is None:
            return path
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._fail(self.hub.status, None)
        return None

    def _is_logged_in(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _listed(self, path, content):
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        listed = {"type": "file", "path": path, "size": len(content), "oid": git}
        if _is_large(path):
            sha256 = hashlib.sha256(content).hexdigest()
            large = {"oid": sha256, "size": len(content), "pointerSize": 130}
            return {
                **listed,
                "oid": hashlib.sha1(git.encode()).hexdigest(),
                "lfs": large,
            }
        return {**listed, "oid": git}

    def _send_file(self, commit, path, content):
        listed = self._listed(path, content)
        checksum = listed.get("lfs", listed)["oid"]
        headers = {"ETag": f'"{checksum}"', "X-Repo-Commit": commit}
        self._send(200, content, headers)

    def _answer(self, value, status=200):
        self._send(status, json.dumps(value).encode())

    def _fail(self, status, code):
        headers = {} if code is None else {"X-Error-Code": code}
        self._send(status, b'{"error": "no"}', headers)

    def _send(self, status, content, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
