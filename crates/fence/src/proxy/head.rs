//! The heads of requests and responses on their way through.
//!
//! Owns: what is refused before anything else, which headers are for one hop only, and what the upstream is told of the
//! client. Never: a body.

use crate::claim::{Problem, RESOURCE, TOKEN};
use crate::passage::Pass;
use http::header::{CONNECTION, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use std::net::SocketAddr;

/// Headers that end at each hop, besides those that `Connection` names. `Expect` is answered here.
const ONE_HOP: [HeaderName; 10] = [
    CONNECTION,
    EXPECT,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Refuses what can't be passed on as one request with one answer.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), Problem> {
    let refused = |status, title, detail: &str| Err(Problem::new(status, "invalid", title, detail));
    let headers = request.headers();
    if request.method() == Method::CONNECT {
        let detail =
            "CONNECT opens a tunnel, and what goes through one can't be compared: send the request itself";
        return refused(StatusCode::NOT_IMPLEMENTED, "no tunnels here", detail);
    }
    // Asking for h2c is an offer that may be ignored; Java's client makes it with each first request.
    let upgrades = headers.get_all(UPGRADE).iter();
    if upgrades.filter(|to| !to.as_bytes().eq_ignore_ascii_case(b"h2c")).count() > 0 {
        let detail = "an upgraded connection carries no requests whose tokens could be compared; for a WebSocket let the \
                      service compare the token";
        return refused(StatusCode::NOT_IMPLEMENTED, "no upgrades here", detail);
    }
    if request.uri().path() == "*" || !request.uri().path().starts_with('/') {
        return refused(StatusCode::BAD_REQUEST, "the path can't be used", "the path has to begin with /");
    }
    let hosts = headers.get_all(HOST).iter().count();
    let is_needed = request.version() >= Version::HTTP_11 && request.uri().authority().is_none();
    if hosts > 1 || (hosts == 0 && is_needed) {
        return refused(StatusCode::BAD_REQUEST, "the Host can't be used", "expected one Host header");
    }
    let mut expects = headers.get_all(EXPECT).iter();
    if expects.any(|expected| !expected.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return refused(
            StatusCode::EXPECTATION_FAILED,
            "the expectation can't be met",
            "Expect: 100-continue is the only one that is known here",
        );
    }
    Ok(())
}

/// The head as the upstream gets it.
pub(super) fn to_upstream(
    mut parts: Parts,
    peer: SocketAddr,
    upstream: &Authority,
    pass: Option<&Pass>,
) -> Parts {
    let host = match parts.uri.authority() {
        // A target with an authority counts more than the header.
        Some(authority) => HeaderValue::try_from(authority.as_str()).ok(),
        None => parts.headers.remove(HOST),
    };
    let headers = &mut parts.headers;
    remove_one_hop(headers);
    if let Some(host) = host {
        headers.insert(FORWARDED_HOST, host.clone());
        headers.insert(HOST, host);
    }
    let ip = peer.ip().to_canonical().to_string();
    let before = headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let chain = before.chain([ip.as_str()]).collect::<Vec<_>>().join(", ");
    if let Ok(chain) = HeaderValue::try_from(chain) {
        headers.insert(FORWARDED_FOR, chain);
    }
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
    if let Some(pass) = pass {
        // As they were compared, whatever `Connection` said of them: the upstream may compare once more.
        headers.insert(TOKEN, HeaderValue::from(pass.token().get()));
        headers.remove(RESOURCE);
        headers.extend(
            HeaderValue::from_str(&encoded(pass.resource().as_str())).ok().map(|name| (RESOURCE, name)),
        );
    }
    let path = parts.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let mut uri = http::uri::Parts::default();
    (uri.scheme, uri.authority, uri.path_and_query) =
        (Some(Scheme::HTTP), Some(upstream.clone()), Some(path));
    // Its parts come from a URI, so they make one.
    parts.uri = Uri::from_parts(uri).unwrap_or(parts.uri);
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    parts
}

/// The head of a response as the client gets it.
pub(super) fn to_client(headers: &mut HeaderMap) {
    remove_one_hop(headers);
}

fn remove_one_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // What says where the body ends isn't for a client to take away.
        .filter(|name| *name != http::header::CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in named.iter().chain(&ONE_HOP) {
        headers.remove(name);
    }
}

/// A name as a header carries it: percent-encoded where it isn't plain ASCII.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::decoded;
    use crate::gate::Gate;
    use crate::gate::tests::{name, token};
    use crate::passage::{Passages, Times};
    use std::time::Duration;

    fn request(target: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    fn passed_on(request: Request<()>, pass: Option<&Pass>) -> Parts {
        let upstream = Authority::from_static("10.0.0.9:80");
        to_upstream(request.into_parts().0, "[::ffff:192.0.2.7]:999".parse().unwrap(), &upstream, pass)
    }

    #[test]
    fn headers_of_one_hop_end_here_and_those_that_connection_names() {
        let request = request(
            "/a?b=1",
            &[
                ("host", "orders.example"),
                ("connection", "close, X-Secret"),
                ("connection", "content-length, host"),
                ("keep-alive", "timeout=5"),
                ("te", "trailers"),
                ("transfer-encoding", "chunked"),
                ("upgrade", "h2c"),
                ("x-secret", "1"),
                ("content-length", "3"),
                ("x-stays", "1"),
                ("x-forwarded-for", "203.0.113.5"),
            ],
        );
        let parts = passed_on(request, None);
        assert_eq!(parts.uri, "http://10.0.0.9:80/a?b=1");
        let headers: std::collections::BTreeMap<_, _> =
            parts.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        let expected = [
            ("content-length", "3"),
            ("host", "orders.example"),
            ("x-forwarded-for", "203.0.113.5, 192.0.2.7"),
            ("x-forwarded-host", "orders.example"),
            ("x-forwarded-proto", "http"),
            ("x-stays", "1"),
        ];
        assert_eq!(headers, expected.into_iter().collect());
    }

    #[tokio::test]
    async fn the_upstream_gets_what_was_compared_even_if_connection_names_it() {
        let times = Times { drain: Duration::ZERO, settle: Duration::ZERO };
        let passages = Passages::new(Gate::default(), times);
        let resource = name("é/100% x");
        let pass = passages.enter(&resource, token(7)).await.unwrap();
        let parts = passed_on(
            request(
                "/",
                &[("host", "h"), ("connection", "x-kunci-token, x-kunci-resource"), ("x-kunci-token", "9")],
            ),
            Some(&pass),
        );
        assert_eq!(parts.headers[TOKEN], "7");
        assert_eq!(decoded(parts.headers[RESOURCE].as_bytes()).unwrap(), resource.as_str().as_bytes());
    }

    #[test]
    fn a_target_with_an_authority_counts_more_than_the_host_header() {
        let parts = passed_on(request("http://other.example/x", &[("host", "orders.example")]), None);
        assert_eq!(
            (parts.uri.to_string().as_str(), &parts.headers[HOST]),
            ("http://10.0.0.9:80/x", &HeaderValue::from_static("other.example"))
        );
    }

    #[test]
    fn what_is_not_one_request_with_one_answer_is_refused() {
        let check = |request: &Request<()>| check(request).map_err(|problem| problem.status().as_u16());
        assert_eq!(check(&request("/", &[("host", "h"), ("upgrade", "h2c")])), Ok(()));
        assert_eq!(check(&request("/", &[("host", "h"), ("expect", "100-Continue")])), Ok(()));
        assert_eq!(check(&request("/", &[("host", "h"), ("upgrade", "websocket")])), Err(501));
        assert_eq!(check(&request("/", &[])), Err(400));
        assert_eq!(check(&request("/", &[("host", "h"), ("host", "h")])), Err(400));
        assert_eq!(check(&request("*", &[("host", "h")])), Err(400));
        assert_eq!(check(&request("/", &[("host", "h"), ("expect", "200-ok")])), Err(417));
        let mut connect = request("h:80", &[("host", "h")]);
        *connect.method_mut() = Method::CONNECT;
        assert_eq!(check(&connect), Err(501));
    }
}
