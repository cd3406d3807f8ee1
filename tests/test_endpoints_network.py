"""Proxies and certificates: which way a URL goes, and that every client goes it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from proxy import HOST, Proxy, Server, basic, certified, serving

from auditor.endpoints.network import Network, client, network_for
from auditor.endpoints.network import Proxy as Way
from auditor.endpoints.transport import TRANSPORTS, HttpReply, NetworkError
from auditor.errors import UsageError

each = pytest.mark.parametrize("name", list(TRANSPORTS))

URL = f"https://{HOST}/v1/chat/completions"
KEY = "sk-very-secret-0123456789"
PASSWORD = "pa:ss wörd"
LOGIN = f"user:{PASSWORD}"
QUOTED = "user:pa%3Ass%20w%C3%B6rd"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# Which way ------------------------------------------------------------------------------------------------------


def proxy_of(url: str, **environment: str) -> str | None:
    proxy = network_for(url, environment).proxy
    return None if proxy is None else proxy.url


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://a.test/v1", {}, None),
        ("https://a.test/v1", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://a.test/v1", {"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1"}, "http://low:1"),
        ("https://a.test/v1", {"https_proxy": "", "HTTPS_PROXY": "http://up:1"}, None),
        ("https://a.test/v1", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://a.test/v1", {"HTTP_PROXY": "p:3128", "HTTPS_PROXY": "http://other:1"}, "http://p:3128"),
        ("https://a.test/v1", {"ALL_PROXY": "http://p"}, "http://p:80"),
        ("https://a.test/v1", {"all_proxy": "https://p/", "HTTPS_PROXY": ""}, "https://p:443"),
        ("http://a.test/v1", {"HTTP_PROXY": "http://[2001:db8::1]:3128"}, "http://[2001:db8::1]:3128"),
    ],
)
def test_the_proxy_of_a_url(url: str, environment: dict[str, str], expected: str | None) -> None:
    """By scheme, then ALL_PROXY; lower case before capitals, and an empty value means none."""
    assert proxy_of(url, **environment) == expected


@pytest.mark.parametrize(
    ("url", "names", "direct"),
    [
        ("https://a.test/v1", "a.test", True),
        ("https://a.test/v1", "b.test, A.TEST", True),
        ("https://x.a.test/v1", "a.test", True),
        ("https://x.a.test/v1", ".a.test", True),
        ("https://x.a.test/v1", "*.a.test", True),
        ("https://xa.test/v1", "a.test", False),
        ("https://a.test/v1", "x.a.test", False),
        ("https://a.test/v1", "*", True),
        ("https://a.test/v1", "a.test:443", True),
        ("https://a.test/v1", "a.test:8443", False),
        ("https://a.test:8443/v1", "a.test:8443", True),
        ("https://a.test:8443/v1", "a.test", True),
        ("https://[2001:db8::1]/v1", "2001:db8::1", True),
        ("https://[2001:db8::1]:8443/v1", "[2001:db8::1]:8443", True),
        ("https://a.test/v1", " , ,", False),
        ("https://localhost:1/v1", "", True),
        ("https://127.0.0.9/v1", "", True),
        ("https://[::1]:80/v1", "", True),
        ("https://10.0.0.1/v1", "", False),
    ],
)
def test_what_goes_directly(url: str, names: str, direct: bool) -> None:
    """Hosts, domains with what is below them, ports and `*` of NO_PROXY; and always loopback."""
    assert (proxy_of(url, HTTPS_PROXY="http://p:1", NO_PROXY=names) is None) == direct


def test_a_login_is_kept_apart_from_the_proxys_url() -> None:
    """User and password are decoded, sent as Basic, and in no repr."""
    network = network_for("http://a.test", {"HTTP_PROXY": f"http://{QUOTED}@p:3128"})
    assert network.proxy is not None
    assert (network.proxy.url, network.proxy.headers) == ("http://p:3128", {"Proxy-Authorization": basic(LOGIN)})
    assert repr(network).count("authorization=set") == 1
    assert "pa" not in repr(network).replace("proxy", "")
    assert basic(LOGIN) not in repr(network)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("socks5://u:hunter2@p:1080", "HTTPS_PROXY: a socks5:// proxy is not supported"),
        ("http://u:hunter2@:3128", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://u:hun#ter2@p:3128", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://u:12#hunter2@p:3128", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://u:hunter2@p:99999", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://u:hunter2@p/path", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://u%3A:hunter2@p", "HTTPS_PROXY is not the URL of a proxy"),
        ("http://[::1", "HTTPS_PROXY is not the URL of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used(value: str, said: str) -> None:
    """The message names the variable and never shows what stands in it."""
    with pytest.raises(UsageError) as caught:
        network_for("https://a.test/v1", {"HTTPS_PROXY": value})
    assert caught.value.message == said
    assert "unter2" not in caught.value.message + caught.value.hint


def test_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    """The message names variable and path; a URL without TLS needs none."""
    missing, other = tmp_path / "none.pem", tmp_path / "other.pem"
    other.write_text("no certificate")
    for environment, said in (
        ({"SSL_CERT_FILE": str(missing)}, f"SSL_CERT_FILE '{missing}' cannot be read: No such file or directory"),
        ({"SSL_CERT_FILE": str(other)}, f"SSL_CERT_FILE '{other}' holds no certificate in PEM format"),
        ({"SSL_CERT_DIR": str(missing)}, f"SSL_CERT_DIR '{missing}' is not a folder"),
    ):
        with pytest.raises(UsageError) as caught:
            network_for("https://a.test/v1", environment)
        assert caught.value.message == said
        assert network_for("http://a.test/v1", environment) == Network()


def test_empty_variables_mean_the_systems_certificates() -> None:
    """`SSL_CERT_FILE=` is as if it were not set."""
    tls = network_for("https://a.test", {"SSL_CERT_FILE": "", "SSL_CERT_DIR": ""}).tls
    assert tls is not None
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)


# Through a proxy, for real --------------------------------------------------------------------------------------


@dataclass
class Office:
    """A proxy, and the one TLS server that can be reached through it."""

    ca: Path
    server: Server
    proxy: Proxy
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {"HTTPS_PROXY": f"http://{QUOTED}@127.0.0.1:{self.port}", "SSL_CERT_FILE": str(self.ca)}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make certificates")
    return certified(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def office(certificates: tuple[Path, ssl.SSLContext]) -> Iterator[Office]:
    ca, tls = certificates
    server = Server()
    with serving(server.handle, tls) as behind:
        proxy = Proxy({f"{HOST}:443": behind}, LOGIN)
        with serving(proxy.handle) as port:
            yield Office(ca, server, proxy, port)


async def _asking(name: str, network: Network | None, url: str, times: int) -> HttpReply:
    transport = TRANSPORTS[name](network)
    try:
        for _ in range(times):
            reply = await transport.post(url, {"Authorization": f"Bearer {KEY}"}, b'{"a": 1}', 5)
        return reply
    finally:
        await transport.close()


def ask(name: str, environment: dict[str, str], url: str = URL, times: int = 1) -> HttpReply:
    return asyncio.run(_asking(name, network_for(url, environment), url, times))


def failure(name: str, environment: dict[str, str], url: str = URL) -> str:
    with pytest.raises(NetworkError) as caught:
        ask(name, environment, url)
    assert caught.value.kind == ("certificate" if "certificate" in str(caught.value) else "network")
    assert "ss w" not in str(caught.value)
    assert "%3A" not in str(caught.value)
    return str(caught.value)


@each
def test_a_request_through_a_tunnel(name: str, office: Office) -> None:
    """One tunnel serves two requests; the proxy sees its own login and no key, the server the reverse."""
    reply = ask(name, office.environment, times=2)
    assert (reply.status, reply.body) == (200, b"{}")
    assert office.proxy.lines == [f"CONNECT {HOST}:443 HTTP/1.1"]
    assert office.proxy.logins == [basic(LOGIN)]
    assert KEY.encode() not in office.proxy.wire
    assert b"authorization: bearer" not in office.proxy.wire.lower()
    assert len(office.server.heads) == 2
    for head in office.server.heads:
        assert head.startswith("post /v1/chat/completions http/1.1")
        assert f"authorization: bearer {KEY}\r\n" in head
        assert "proxy-" not in head


@each
def test_the_environment_decides_where_nothing_is_told(
    name: str, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transport without a network goes the way that the process's variables name."""
    for variable, value in office.environment.items():
        monkeypatch.setenv(variable, value)
    assert asyncio.run(_asking(name, None, URL, 1)).status == 200
    assert len(office.proxy.lines) == 1


@each
def test_a_certificate_that_nobody_vouches_for(name: str, office: Office) -> None:
    """Without SSL_CERT_FILE the server behind the proxy is not trusted, and never sees the request."""
    said = failure(name, {"HTTPS_PROXY": office.environment["HTTPS_PROXY"]})
    assert said.startswith("certificate verification failed: unable to get local issuer certificate")
    assert "SSL_CERT_FILE" in said
    assert office.server.heads == []


@each
def test_a_certificate_for_another_host(name: str, office: Office) -> None:
    """A certificate of a trusted CA is held against the host's name."""
    office.proxy.routes = {"other.example.test:443": office.proxy.routes[f"{HOST}:443"]}
    said = failure(name, office.environment, "https://other.example.test/v1")
    assert said.startswith("certificate verification failed: Hostname mismatch")


@each
def test_no_proxy_and_loopback_go_directly(name: str, office: Office) -> None:
    """The proxy sees nothing of what NO_PROXY names, nor of a server on this machine."""
    said = failure(name, office.environment | {"NO_PROXY": "example.test"})
    assert said.startswith("cannot connect: ")
    server = Server()
    with serving(server.handle) as port:
        everything = office.environment | {"HTTP_PROXY": office.environment["HTTPS_PROXY"]}
        assert ask(name, everything, f"http://127.0.0.1:{port}/v1").status == 200
        assert ask(name, everything, f"http://localhost:{port}/v1").status == 200
    assert len(server.heads) == 2
    assert office.proxy.lines == []


@each
def test_a_proxy_that_is_down(name: str) -> None:
    """The message names the proxy's host and port, and neither user nor password."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = failure(name, {"HTTPS_PROXY": f"http://{QUOTED}@127.0.0.1:{port}"})
    assert said == f"cannot connect through the proxy 127.0.0.1:{port}: Connection refused"


@each
def test_a_proxy_that_refuses(name: str, office: Office) -> None:
    """A wrong login, or a host that the proxy does not reach, is told with the proxy's own words."""
    through = f"cannot connect through the proxy 127.0.0.1:{office.port}: "
    without = {"HTTPS_PROXY": f"http://127.0.0.1:{office.port}"}
    assert failure(name, without) == through + "407 Who Are You"
    assert failure(name, office.environment, "https://nowhere.example.test/v1") == through + "502 No Such Host"


@each
def test_a_request_without_tls_is_forwarded(name: str) -> None:
    """HTTP_PROXY gets it in absolute form with its login, which the server does not see."""
    server = Server()
    with serving(server.handle) as behind:
        proxy = Proxy({HOST: behind}, LOGIN)
        with serving(proxy.handle) as port:
            environment = {"HTTP_PROXY": f"http://{QUOTED}@127.0.0.1:{port}"}
            assert ask(name, environment, f"http://{HOST}/v1/x").status == 200
    assert proxy.lines == [f"POST http://{HOST}/v1/x HTTP/1.1"]
    assert proxy.logins == [basic(LOGIN)]
    assert server.heads[0].startswith("post /v1/x http/1.1")
    assert f"authorization: bearer {KEY}\r\n" in server.heads[0]


@each
def test_a_proxy_that_is_spoken_to_in_tls(name: str, certificates: tuple[Path, ssl.SSLContext]) -> None:
    """An https:// proxy is verified like a server, and tunnels and forwards like any other."""
    ca, tls = certificates
    plain, encrypted = Server(), Server()
    with serving(plain.handle) as one, serving(encrypted.handle, tls) as other:
        proxy = Proxy({HOST: one, f"{HOST}:443": other}, LOGIN)
        with serving(proxy.handle, tls) as port:
            environment = {"ALL_PROXY": f"https://{QUOTED}@127.0.0.1:{port}"}
            assert failure(name, environment).startswith("certificate verification failed: ")
            environment["SSL_CERT_FILE"] = str(ca)
            assert ask(name, environment).status == 200
            assert ask(name, environment, f"http://{HOST}/v1/x").status == 200
    assert proxy.lines == [f"CONNECT {HOST}:443 HTTP/1.1", f"POST http://{HOST}/v1/x HTTP/1.1"]
    assert (len(plain.heads), len(encrypted.heads)) == (1, 1)


def test_a_blocking_client_goes_the_same_way(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the tunnel with the CA's certificate, and not without it; it keeps its base URL and headers."""
    monkeypatch.setenv("HTTPS_PROXY", office.environment["HTTPS_PROXY"])
    with client(f"https://{HOST}/v1", {"X-Key": KEY}, 5) as untrusting, pytest.raises(httpx.ConnectError, match="CERT"):
        untrusting.get("/models")
    monkeypatch.setenv("SSL_CERT_FILE", str(office.ca))
    with client(f"https://{HOST}/v1", {"X-Key": KEY}, 5) as trusting:
        assert trusting.get("/models").status_code == 200
        assert trusting.get(f"https://{HOST}/v1/other").status_code == 200
    assert [head.split(" ")[1] for head in office.server.heads] == ["/v1/models", "/v1/other"]
    assert f"x-key: {KEY}" in office.server.heads[0]
    assert KEY.encode() not in office.proxy.wire


def test_a_way_is_a_value() -> None:
    """Equal ways are equal, so that what was found once can be compared and shared."""
    assert network_for("http://a.test", {"HTTP_PROXY": "p:1"}) == Network(Way("http", "p:1"))
