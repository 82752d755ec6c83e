"""A web server on this machine that misbehaves on demand."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Offer:
    """Content served at one path, and its faults."""

    content: bytes
    cuts: list[int] = field(default_factory=list)  # bytes sent in each of the first responses
    ranges: bool = True
    tag: str = '"v1"'
    status: int = 200
    statuses: list[int] = field(default_factory=list)  # of the first responses
    length: int | str | None = None  # a false Content-Length; 0: none is sent
    asked: list[str] = field(default_factory=list)  # the Range header of each request


class Handler(BaseHTTPRequestHandler):
    offers: dict[str, Offer]

    def do_GET(self):
        offer = self.offers.get(self.path)
        if offer is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range", "")
        offer.asked.append(wanted)
        status = offer.statuses.pop(0) if offer.statuses else offer.status
        if status != 200:
            self.send_error(status)
            return
        same = self.headers.get("If-Range", offer.tag) == offer.tag
        start = int(wanted[6:-1]) if wanted and offer.ranges and same else 0
        body = offer.content[start:]
        self.send_response(206 if start else 200)
        length = len(body) if offer.length is None else offer.length
        if length:
            self.send_header("Content-Length", str(length))
        if offer.tag:
            self.send_header("ETag", offer.tag)
        self.end_headers()
        self.wfile.write(body[: offer.cuts.pop(0)] if offer.cuts else body)

    def log_message(self, format, *args):
        return


def serving(offers):
    """The address of the server of these offers."""
    return running(type("Handler", (Handler,), {"offers": offers}))


@contextmanager
def running(handler):
    """The address of a web server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False  # closing waits for open connections
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
