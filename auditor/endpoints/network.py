"""The way to a server: which proxy, which certificates. Found once per endpoint, the same for every HTTP client."""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from auditor.errors import UsageError

if TYPE_CHECKING:
    import httpx

CONNECT_TIMEOUT = 4.0
"""Two retransmissions of a lost SYN. Short, so that an address where nothing is can be told within seconds."""

_PORTS = {"http": 80, "https": 443}
_PROXY_HINT = "write http://[user:password@]host:port, with %XX for what a URL cannot hold"


class Proxy(Struct, frozen=True):
    """An HTTP proxy: `address` is host:port, `authorization` what Proxy-Authorization says; no repr shows it."""

    scheme: str
    address: str
    authorization: str | None = None

    def __repr__(self) -> str:
        return f"Proxy({self.url!r}, authorization={'set' if self.authorization else 'none'})"

    @property
    def url(self) -> str:
        """Without user and password."""
        return f"{self.scheme}://{self.address}"

    @property
    def headers(self) -> dict[str, str]:
        """For the proxy alone."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


class Network(Struct, frozen=True):
    """No proxy: directly. No `tls`: nothing on the way is encrypted."""

    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None

    def for_httpx(self) -> dict[str, Any]:
        """Arguments of an httpx client, sync or async, that make it go this way and heed no variables of its own."""
        import httpx

        tls = self.tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and loads nothing for that
        if self.proxy is None:
            return {"trust_env": False, "verify": tls}
        own = self.tls if self.proxy.scheme == "https" else None
        proxy = httpx.Proxy(self.proxy.url, headers=self.proxy.headers, ssl_context=own)
        return {"trust_env": False, "verify": tls, "proxy": proxy}


def network_for(url: str, environment: Mapping[str, str] = os.environ) -> Network:
    """The way to a URL. Loopback is never proxied.

    Heeds HTTPS_PROXY, HTTP_PROXY (by the URL's scheme), ALL_PROXY, NO_PROXY, each in lower case first, and
    SSL_CERT_FILE, SSL_CERT_DIR. Raises UsageError where one of them cannot be used.
    """
    parts = urlsplit(url)
    proxy = None if _goes_directly(parts, environment) else _proxy(parts.scheme, environment)
    encrypted = parts.scheme == "https" or (proxy is not None and proxy.scheme == "https")
    return Network(proxy, _certificates(environment) if encrypted else None)


def client(base_url: str, headers: Mapping[str, str], timeout: float) -> httpx.Client:
    """A blocking client for what is asked beside completions. `timeout` in seconds, per step. Raises UsageError."""
    import httpx

    limit = httpx.Timeout(timeout, connect=CONNECT_TIMEOUT)
    way = network_for(base_url).for_httpx()
    return httpx.Client(base_url=base_url, headers=dict(headers), timeout=limit, follow_redirects=False, **way)


def _goes_directly(parts: SplitResult, environment: Mapping[str, str]) -> bool:
    """NO_PROXY names hosts and domains with all below them, each with or without a port; `*` is every host."""
    host = (parts.hostname or "").rstrip(".")
    if _is_loopback(host):
        return True
    port = parts.port or _PORTS.get(parts.scheme)
    spelled = (f".{host}", f".{host}:{port}", f".[{host}]:{port}")
    names = [name.strip().lower() for name in _variable("no_proxy", environment)[1].split(",")]
    bare = [f".{name.lstrip('*.')}" for name in names]
    return "*" in names or any(one.endswith(name) for one in spelled for name in bare if name != ".")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _variable(name: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """(name, value) of a variable as it was written. An empty one in lower case overrules one in capitals."""
    for spelling in (name, name.upper()):
        if spelling in environment:
            return spelling, environment[spelling].strip()
    return name.upper(), ""


def _proxy(scheme: str, environment: Mapping[str, str]) -> Proxy | None:
    for name in (f"{scheme}_proxy", "all_proxy"):
        variable, value = _variable(name, environment)
        if value:
            return _read_proxy(variable, value)
    return None


def _read_proxy(variable: str, value: str) -> Proxy:
    """No message shows the value: it may hold a password."""
    wrong = UsageError(f"{variable} is not the URL of a proxy", _PROXY_HINT)
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in _PORTS:
        raise UsageError(f"{variable}: a {parts.scheme}:// proxy is not supported", "http:// and https:// proxies are")
    login = unquote(parts.username or ""), unquote(parts.password or "")
    if not host or port == 0 or parts.path not in ("", "/") or parts.query or parts.fragment or ":" in login[0]:
        raise wrong
    host = f"[{host}]" if ":" in host else host
    return Proxy(parts.scheme, f"{host}:{port or _PORTS[parts.scheme]}", _basic(*login) if any(login) else None)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _certificates(environment: Mapping[str, str]) -> ssl.SSLContext:
    """The system's certificates, or those that SSL_CERT_FILE and SSL_CERT_DIR name in their place."""
    file, folder = environment.get("SSL_CERT_FILE") or None, environment.get("SSL_CERT_DIR") or None
    if folder and not os.path.isdir(folder):  # OpenSSL would find no certificates in it, and say nothing
        raise UsageError(f"SSL_CERT_DIR {folder!r} is not a folder")
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except ssl.SSLError as error:
        raise UsageError(f"SSL_CERT_FILE {file!r} holds no certificate in PEM format") from error
    except OSError as error:
        raise UsageError(f"SSL_CERT_FILE {file!r} cannot be read: {error.strerror}") from error
