#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of the API of Kubernetes that emud-k8s and its test use, in memory.

List, watch, get, create, delete and merge patch, with resource versions, conflicts, the status
subresource, field selectors and finalizers. No users and rights, no schemas, no default values; but
nobody may list a ConfigMap that is named denied. From SIGUSR1 to the next it is too busy (503) to
list ConfigMaps and to change a status.

usage: server.py PORT
"""
import json
import signal
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

KINDS = {"pods": "Pod", "links": "Link", "nodes": "Node", "configmaps": "ConfigMap", "namespaces": "Namespace"}


def copy(value):
    return json.loads(json.dumps(value))


def merge(value, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            value.pop(key, None)
        else:
            value[key] = merge(value.get(key), change)
    return value


def fits(thing, selector):
    for term in filter(None, selector.split(",")):
        path, wanted = term.split("=", 1)
        found = thing
        for part in path.split("."):
            found = (found or {}).get(part)
        if found != wanted:
            return False
    return True


class Store:
    """Objects by collection, namespace and name, and every change of them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.version = 1
        self.objects = {}
        self.events = []

    def put(self, event, key, thing):
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        if event == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = thing
        self.events.append((self.version, event, key, copy(thing)))
        self.changed.notify_all()


STORE = Store()
BUSY = threading.Event()


class Failed(Exception):
    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self, method):
        url = urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        self.query = {key: values[0] for key, values in parse_qs(url.query).items()}
        at = 2 if parts[0] == "api" else 3
        self.group_version = "/".join(parts[1:at])
        rest, namespace = parts[at:], None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        collection, name, self.subresource = (rest + [None] * 3)[:3]
        self.kind = KINDS[collection]
        self.key = (collection, namespace, name)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            method(json.loads(body or b"{}"))
        except Failed as e:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": str(e), "code": e.code}
            self.answer(status | {"reason": str(e), "metadata": {}}, e.code)

    do_GET = lambda self: self.handle_one(self.get)
    do_POST = lambda self: self.handle_one(self.create)
    do_PATCH = lambda self: self.handle_one(self.patch)
    do_DELETE = lambda self: self.handle_one(self.delete)

    def answer(self, thing, code=200):
        body = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def found(self):
        if self.key not in STORE.objects:
            raise Failed(404, "NotFound")
        return copy(STORE.objects[self.key])

    def matches(self, key, thing):
        collection, namespace, _ = self.key
        same = key[0] == collection and namespace in (None, key[1])
        return same and fits(thing, self.query.get("fieldSelector", ""))

    def get(self, _):
        if self.key[2]:
            with STORE.changed:
                thing = self.found()
            if "PartialObjectMetadata" in self.headers.get("Accept", ""):
                meta = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
                thing = meta | {"metadata": thing["metadata"]}
            self.answer(thing)
        elif self.query.get("watch") in ("1", "true"):
            self.watch()
        elif self.key[0] == "configmaps" and "metadata.name=denied" in self.query.get("fieldSelector", ""):
            raise Failed(403, "Forbidden")
        elif self.key[0] == "configmaps" and BUSY.is_set():
            raise Failed(503, "ServiceUnavailable")
        else:
            with STORE.changed:
                items = [copy(o) for key, o in STORE.objects.items() if self.matches(key, o)]
                version = str(STORE.version)
            kind = {"kind": self.kind + "List", "apiVersion": self.group_version}
            self.answer(kind | {"metadata": {"resourceVersion": version}, "items": items})

    def watch(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        last = int(self.query.get("resourceVersion") or 0)
        end = time.monotonic() + float(self.query.get("timeoutSeconds", 290))
        while time.monotonic() < end:
            with STORE.changed:
                new = [event for event in STORE.events if event[0] > last]
                if not new:
                    STORE.changed.wait(1)
            for last, event, key, thing in new:
                if self.matches(key, thing):
                    line = json.dumps({"type": event, "object": thing}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def create(self, thing):
        meta = thing.setdefault("metadata", {})
        collection, namespace, _ = self.key
        key = (collection, namespace, meta["name"])
        with STORE.changed:
            if key in STORE.objects:
                raise Failed(409, "AlreadyExists")
            thing |= {"kind": self.kind, "apiVersion": self.group_version}
            created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": created}
            if namespace:
                meta["namespace"] = namespace
            STORE.put("ADDED", key, thing)
        self.answer(thing, 201)

    def patch(self, patch):
        if self.subresource == "status" and BUSY.is_set():
            raise Failed(503, "ServiceUnavailable")
        with STORE.changed:
            before = self.found()
            meta = patch.get("metadata", {})
            for key in ("uid", "resourceVersion"):
                if meta.get(key, before["metadata"][key]) != before["metadata"][key]:
                    raise Failed(409, "Conflict")
            if self.subresource == "status":
                patch = {"status": patch.get("status")}
            else:
                patch.pop("status", None)
            after = merge(before, patch)
            gone = after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers")
            if after != before:
                STORE.put("DELETED" if gone else "MODIFIED", self.key, after)
        self.answer(after)

    def delete(self, _):
        with STORE.changed:
            thing = self.found()
            meta = thing["metadata"]
            if not meta.get("finalizers"):
                STORE.put("DELETED", self.key, thing)
            elif "deletionTimestamp" not in meta:
                meta["deletionTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                STORE.put("MODIFIED", self.key, thing)
        self.answer(thing)


def exchange(*_):
    BUSY.clear() if BUSY.is_set() else BUSY.set()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, exchange)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
