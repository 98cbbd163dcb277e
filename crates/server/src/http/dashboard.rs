//! `/`: the dashboard, a page that asks this very node through its public paths.
//!
//! Owns: which files it is made of, and the headers that keep a browser from more than the page needs. Never: a lock, or
//! anything that a client couldn't ask for itself. The files are built from `ui/` and committed: no build here needs Node.

use super::front::Front;
use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;

/// The page may load its own files, ask this node, and nothing else: no other host, no frame around it, no script or
/// style that isn't in a file of its own, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    // For what is too old to know `frame-ancestors`.
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    // Kept, and asked for again each time: after an upgrade nobody sees an old page.
    (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
];

/// One file of the page.
#[derive(Clone, Copy)]
struct Asset {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($path:literal, $file:literal, $content_type:literal) => {
        Asset {
            path: $path,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../../../ui/dist/", $file)),
        }
    };
}

const ASSETS: [Asset; 5] = [
    asset!("/", "index.html", "text/html; charset=utf-8"),
    asset!("/ui/app.js", "ui/app.js", "text/javascript; charset=utf-8"),
    asset!("/ui/app.css", "ui/app.css", "text/css; charset=utf-8"),
    asset!("/ui/icon.svg", "ui/icon.svg", "image/svg+xml"),
    asset!("/ui/licenses.txt", "ui/licenses.txt", "text/plain; charset=utf-8"),
];

/// The page's paths. This node answers them by itself, without a cluster too.
pub(super) fn routes() -> Router<Front> {
    ASSETS.into_iter().fold(Router::new(), |routes, asset| {
        let tag = asset.tag();
        routes.route(asset.path, get(async move |headers: HeaderMap| asset.answer(&tag, &headers)))
    })
}

impl Asset {
    /// Changes with the content: for caches, no proof of anything.
    fn tag(self) -> HeaderValue {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.bytes);
        let tag = format!("\"{:016x}\"", hasher.finish());
        // Hexadecimal digits are a header.
        HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"0\""))
    }

    fn answer(self, tag: &HeaderValue, asked: &HeaderMap) -> Response {
        let mut response = if is_known(tag, asked) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let content_type = HeaderValue::from_static(self.content_type);
            ([(CONTENT_TYPE, content_type)], Bytes::from_static(self.bytes)).into_response()
        };
        response.headers_mut().extend(HEADERS);
        response.headers_mut().insert(ETAG, tag.clone());
        response
    }
}

/// Whether the browser says that it has this very content.
fn is_known(tag: &HeaderValue, asked: &HeaderMap) -> bool {
    let tags = asked.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let mut tags = tags.flat_map(|tags| tags.split(',')).map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|known| known == "*" || known.as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// What was built and isn't served would be a page with a hole.
    #[test]
    fn every_built_file_is_served() {
        let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/dist");
        let mut built = BTreeSet::new();
        for (folder, path) in [("", "/"), ("ui", "/ui/")] {
            for entry in std::fs::read_dir(dist.join(folder)).unwrap().flatten() {
                if entry.file_type().unwrap().is_file() {
                    built.insert(format!("{path}{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        let served = ASSETS.map(|asset| if asset.path == "/" { "/index.html" } else { asset.path });
        let served: BTreeSet<String> = served.into_iter().map(str::to_owned).collect();
        assert_eq!(served, built, "ui/dist and the table of assets differ");
    }

    #[test]
    fn the_page_names_no_other_host() {
        let page = ASSETS.iter().find(|asset| asset.path == "/").unwrap();
        let text = String::from_utf8_lossy(page.bytes);
        assert!(!text.contains("//"), "{text}");
        for needed in ["./ui/app.js", "./ui/app.css", "./ui/icon.svg"] {
            assert!(text.contains(needed), "{needed} isn't in {text}");
        }
    }

    #[test]
    fn a_browser_that_has_the_file_gets_it_not_again() {
        let tag = HeaderValue::from_static("\"a1\"");
        let asked =
            |value: &'static str| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(value))]);
        for known in ["\"a1\"", "W/\"a1\"", "\"b\", \"a1\"", "*"] {
            assert!(is_known(&tag, &asked(known)), "{known}");
        }
        assert!(!is_known(&tag, &asked("\"b\"")) && !is_known(&tag, &HeaderMap::new()));
    }
}
