//! Which requests need a token, and for which resource.
//!
//! Owns: patterns of paths, and the decision. Never: reads a token.

use crate::claim::{Problem, decoded, is_safe};
use http::{Method, StatusCode};
use kunci_types::ResourceName;

/// What is done with what a rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// It needs a token.
    #[default]
    Fence,
    /// It goes on without.
    Open,
    /// It doesn't go on.
    Refuse,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It goes on without a token.
    Open,
    /// It needs a token, of this resource where a rule says so.
    Fence(Option<String>),
}

/// A rule; the first that matches counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pattern: Pattern,
    /// Empty: every method that isn't safe.
    methods: Vec<Method>,
    action: Action,
    resource: Option<Template>,
}

/// All rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules(pub(super) Vec<Rule>);

impl Rule {
    /// A rule from its parts as the settings have them; the error says what was found and expected.
    pub(super) fn new(
        path: &str,
        methods: &[String],
        action: Action,
        resource: Option<&str>,
    ) -> Result<Self, String> {
        let pattern = Pattern::parse(path)?;
        let method = |text: &String| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
            let method = Method::from_bytes(text.as_bytes()).ok().filter(|_| is_plain);
            method
                .ok_or_else(|| format!("methods: found {text:?}, expected one in capitals, such as \"PUT\""))
        };
        if resource.is_some() && action != Action::Fence {
            return Err("resource: it only means something with action = \"fence\"".to_owned());
        }
        Ok(Self {
            resource: resource.map(|text| Template::parse(text, &pattern)).transpose()?,
            methods: methods.iter().map(method).collect::<Result<_, _>>()?,
            pattern,
            action,
        })
    }

    fn takes(&self, method: &Method) -> bool {
        if self.methods.is_empty() { !is_safe(method) } else { self.methods.contains(method) }
    }
}

impl Rules {
    /// What becomes of a request by this method for this path. Without a rule for it a safe one goes on, and any other needs
    /// a token.
    pub(super) fn decide(&self, method: &Method, path: &str) -> Result<Decision, Problem> {
        let by_default = if is_safe(method) { Decision::Open } else { Decision::Fence(None) };
        if !self.0.iter().any(|rule| rule.takes(method)) {
            return Ok(by_default);
        }
        let segments = segments(path).ok_or_else(|| odd(path))?;
        for rule in self.0.iter().filter(|rule| rule.takes(method)) {
            let Some(found) = rule.pattern.matches(&segments) else { continue };
            return match rule.action {
                Action::Open => Ok(Decision::Open),
                Action::Fence => Ok(Decision::Fence(rule.resource.as_ref().map(|of| of.fill(&found)))),
                Action::Refuse => {
                    let detail = format!("{method} {path} is refused by a rule of this proxy");
                    Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", "a rule forbids this", detail))
                }
            };
        }
        Ok(by_default)
    }
}

/// A path's decoded segments; `None` when the service behind could read it as another path than this says.
fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/')?;
    // `/orders/42/` is what `/orders/42` is.
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    let segment = |text: &str| {
        let text = String::from_utf8(decoded(text.as_bytes())?.into_owned()).ok()?;
        let is_odd = text.is_empty()
            || text == "."
            || text == ".."
            || text.contains(|c: char| matches!(c, '/' | '\\' | ';') || c.is_control());
        (!is_odd).then_some(text)
    };
    path.split('/').map(segment).collect()
}

fn odd(path: &str) -> Problem {
    let detail = format!(
        "{path:?} could be read as another path: send it without empty, . and .. segments, without ; and \\, and without a / \
         that is encoded"
    );
    Problem::new(StatusCode::BAD_REQUEST, "odd_path", "the path can't be matched with the rules", detail)
}

/// A pattern of paths: `/orders/{id}`, `/files/{path...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// One segment.
    One(String),
    /// All segments that are left, at least one.
    Rest(String),
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let fault = |what: &str| Err(format!("path: found {text:?}, {what}"));
        let Some(segments) = segments(text) else {
            return fault("expected one that begins with / and has no empty, . or .. segment");
        };
        let count = segments.len();
        let mut parts = Vec::new();
        for (number, segment) in segments.into_iter().enumerate() {
            let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
                if segment.contains(['{', '}', '*']) {
                    return fault("expected {name} for a whole segment, or {name...} at the end");
                }
                parts.push(Part::Literal(segment));
                continue;
            };
            let (name, is_rest) = match name.strip_suffix("...") {
                Some(name) => (name, true),
                None => (name, false),
            };
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                return fault("expected letters, digits and _ between { and }");
            }
            if is_rest && number + 1 != count {
                return fault("expected {name...} only at the end");
            }
            if parts.iter().any(|part| matches!(part, Part::One(other) if other == name)) {
                return fault("expected each name once");
            }
            parts.push(if is_rest { Part::Rest(name.to_owned()) } else { Part::One(name.to_owned()) });
        }
        Ok(Self(parts))
    }

    /// What stands for each name, if the path is of this pattern.
    fn matches<'a>(&'a self, mut segments: &[String]) -> Option<Vec<(&'a str, String)>> {
        let mut found = Vec::new();
        for part in &self.0 {
            let (first, rest) = segments.split_first()?;
            match part {
                Part::Literal(text) if text == first => {}
                Part::Literal(_) => return None,
                Part::One(name) => found.push((name.as_str(), first.clone())),
                Part::Rest(name) => {
                    found.push((name.as_str(), segments.join("/")));
                    return Some(found);
                }
            }
            segments = rest;
        }
        segments.is_empty().then_some(found)
    }

    fn has(&self, wanted: &str) -> bool {
        self.0.iter().any(|part| matches!(part, Part::One(name) | Part::Rest(name) if name == wanted))
    }
}

/// The resource that a path belongs to: `orders/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Of(String),
}

impl Template {
    fn parse(text: &str, pattern: &Pattern) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(format!("resource: found {text:?}, expected a }} for each {{"));
            };
            if !pattern.has(name) {
                return Err(format!("resource: found {{{name}}}, which path doesn't have"));
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Of(name.to_owned()));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        let template = Self(pieces);
        // With some name in the place of each.
        match ResourceName::parse(&template.fill(&[])) {
            Ok(_) => Ok(template),
            Err(fault) => Err(format!("resource: found {text:?}, which can't be a name: {fault}")),
        }
    }

    fn fill(&self, found: &[(&str, String)]) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Of(wanted) => {
                let value = found.iter().find(|(name, _)| name == wanted);
                value.map_or_else(|| "x".to_owned(), |(_, value)| value.clone())
            }
        };
        self.0.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str, methods: &[&str], action: Action, resource: Option<&str>) -> Rule {
        let methods: Vec<String> = methods.iter().map(|method| (*method).to_owned()).collect();
        Rule::new(path, &methods, action, resource).unwrap()
    }

    fn decide(rules: &Rules, method: &Method, path: &str) -> Result<Decision, u16> {
        rules.decide(method, path).map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn without_rules_every_method_that_is_not_safe_needs_a_token_whatever_the_path() {
        let rules = Rules::default();
        for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND", "BREW", "get"] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(decide(&rules, &method, "/a//../%2F"), Ok(Decision::Fence(None)));
        }
        assert_eq!(decide(&rules, &Method::GET, "/a//../%2F"), Ok(Decision::Open));
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rules = Rules(vec![
            rule("/login", &["POST"], Action::Open, None),
            rule("/orders/{id}", &[], Action::Fence, Some("orders/{id}")),
            rule("/files/{path...}", &["PUT", "GET"], Action::Fence, Some("{path}")),
            rule("/{all...}", &[], Action::Refuse, None),
        ]);
        let fence = |resource: &str| Ok(Decision::Fence(Some(resource.to_owned())));
        assert_eq!(decide(&rules, &Method::POST, "/login"), Ok(Decision::Open));
        assert_eq!(decide(&rules, &Method::PUT, "/login"), Err(403));
        assert_eq!(decide(&rules, &Method::PUT, "/orders/42"), fence("orders/42"));
        assert_eq!(decide(&rules, &Method::PUT, "/orders/%34%32/"), fence("orders/42"));
        assert_eq!(decide(&rules, &Method::GET, "/orders/42"), Ok(Decision::Open));
        assert_eq!(decide(&rules, &Method::GET, "/files/a/b"), fence("a/b"), "a read that a rule names");
        assert_eq!(decide(&rules, &Method::DELETE, "/files/a/b"), Err(403));
        assert_eq!(decide(&rules, &Method::POST, "/orders"), Err(403));
        assert_eq!(
            decide(&rules, &Method::POST, "/"),
            Ok(Decision::Fence(None)),
            "a rest has one segment or more"
        );
    }

    /// A path that the service behind may read as another one could pass by a rule.
    #[test]
    fn a_path_that_can_be_read_in_two_ways_matches_nothing() {
        let rules = Rules(vec![rule("/open/{rest...}", &[], Action::Open, None)]);
        for path in [
            "/open/../orders/42",
            "/open/%2e%2e/orders",
            "/open//x",
            "/open/a%2Fb",
            "/open/a\\..\\b",
            "/open/%5C",
            "/open/./x",
            "/open/%",
            "/open/%00",
            "/open/%ff",
            "/open/x;y",
            "//open/x",
        ] {
            assert_eq!(decide(&rules, &Method::PUT, path), Err(400), "{path}");
        }
        assert_eq!(
            decide(&rules, &Method::GET, "/open/../orders/42"),
            Ok(Decision::Open),
            "no rule is for reads"
        );
    }

    #[test]
    fn a_rule_that_can_not_be_used_is_refused_with_what_was_found() {
        let fault =
            |path: &str, resource: Option<&str>| Rule::new(path, &[], Action::Fence, resource).unwrap_err();
        assert!(fault("orders", None).contains("expected one that begins with /"));
        assert!(fault("/a/{b...}/c", None).contains("only at the end"));
        assert!(fault("/a/{}", None).contains("letters, digits and _"));
        assert!(fault("/a/x{b}", None).contains("a whole segment"));
        assert!(fault("/a/*", None).contains("a whole segment"));
        assert!(fault("/{a}/{a}", None).contains("each name once"));
        assert_eq!(fault("/a/{b}", Some("r/{c}")), "resource: found {c}, which path doesn't have");
        assert!(fault("/a/{b}", Some("r/{b")).contains("a } for each {"));
        assert!(fault("/a/{b}", Some(" {b}")).contains("which can't be a name"));
        assert!(
            Rule::new("/a", &["put".to_owned()], Action::Fence, None).unwrap_err().contains("in capitals")
        );
        assert!(Rule::new("/a", &[], Action::Open, Some("x")).is_err());
    }
}
