//! Which door it is.
//!
//! Owns: the order option, environment, default, and what is said when a verb can't go through the one that was named.
//! Never: connects.

use super::{Door, Native};
use crate::client::Client;
use crate::exit::Failure;

/// Names native doors where no option does.
pub(crate) const ENDPOINTS: &str = "KUNCI_ENDPOINTS";
/// Names a node's HTTP where no option does.
pub(crate) const URL: &str = "KUNCI_URL";

/// Where a node of this machine is by itself.
const ENDPOINTS_DEFAULT: &str = "127.0.0.1:7401";
const URL_DEFAULT: &str = "http://127.0.0.1:7400";

/// Who named a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Whoever typed the command.
    Option,
    /// Their environment.
    Variable,
    /// Nobody.
    Default,
}

/// A door as it was named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    text: String,
    source: Source,
}

/// Both doors of one cluster, as far as anybody named them. At least one is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doors {
    native: Option<Named>,
    http: Option<Named>,
}

/// Which doors a request can go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Either.
    Either,
    /// HTTP, because of this: a verb or an option.
    Http(&'static str),
}

impl Doors {
    /// What the options say, else the environment, else this machine. An option speaks of one cluster, and the
    /// environment perhaps of another: so nothing is taken from there when there is an option.
    pub(crate) fn find(
        endpoints: Option<&str>,
        url: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let named = |text: &str, source| Some(Named { text: text.to_owned(), source });
        let option = |text: Option<&str>| text.and_then(|text| named(text, Source::Option));
        let variable = |name| {
            let text = variable(name).filter(|text| !text.trim().is_empty());
            text.and_then(|text| named(&text, Source::Variable))
        };
        let given = Self { native: option(endpoints), http: option(url) };
        if given.is_some() {
            return given;
        }
        let given = Self { native: variable(ENDPOINTS), http: variable(URL) };
        if given.is_some() {
            return given;
        }
        Self { native: named(ENDPOINTS_DEFAULT, Source::Default), http: named(URL_DEFAULT, Source::Default) }
    }

    fn is_some(&self) -> bool {
        self.native.is_some() || self.http.is_some()
    }

    /// The door for a request: the native one where both will do.
    pub(crate) fn door(&self, needs: Needs) -> Result<Door, Failure> {
        match (needs, &self.native) {
            (Needs::Http(what), _) => self.http(what).map(Door::Http),
            (Needs::Either, Some(native)) => {
                Native::new(&native.text, native.argument("--endpoints", ENDPOINTS)).map(Door::Native)
            }
            (Needs::Either, None) => self.http("this").map(Door::Http),
        }
    }

    /// HTTP for what only HTTP can do.
    pub(crate) fn http(&self, what: &str) -> Result<Client, Failure> {
        match (&self.http, &self.native) {
            (Some(http), _) => Client::named(http.argument("--url", URL), &http.text),
            (None, native) => Err(Failure::usage(format!(
                "{what} goes over HTTP only, and {} names native doors; name the HTTP of a node with --url, such as \
                 --url {URL_DEFAULT}",
                native.as_ref().map_or("nobody", |native| native.argument("--endpoints", ENDPOINTS)),
            ))),
        }
    }

    /// Who named the door of a request that both will do for.
    pub(crate) fn source(&self) -> Source {
        let named = self.native.as_ref().or(self.http.as_ref());
        named.map_or(Source::Default, |named| named.source)
    }

    /// The environment in which another `kunci` finds the same cluster: a value for each variable, or nothing where the
    /// variable mustn't be there.
    pub(crate) fn variables(&self) -> [(&'static str, Option<String>); 2] {
        let text = |named: &Option<Named>| named.as_ref().map(|named| named.text.clone());
        [(ENDPOINTS, text(&self.native)), (URL, text(&self.http))]
    }
}

impl Named {
    fn argument<'a>(&self, option: &'a str, variable: &'a str) -> &'a str {
        if self.source == Source::Variable { variable } else { option }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(option: &str, value: &str, variables: &[(&str, &str)]) -> Doors {
        let given = |name: &str| (option == name).then_some(value);
        Doors::find(given("--endpoints"), given("--url"), |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn taken(doors: &Doors, needs: Needs) -> String {
        match doors.door(needs) {
            Ok(Door::Http(client)) => client.url().to_owned(),
            Ok(Door::Native(native)) => native.addresses().join(","),
            Err(failure) => failure.text,
        }
    }

    const BOTH: [(&str, &str); 2] = [(ENDPOINTS, "e:1,f:2"), (URL, "http://u:1")];

    #[test]
    fn an_option_beats_the_environment_and_there_the_endpoints_win() {
        let either = |option, value, variables: &[_]| taken(&found(option, value, variables), Needs::Either);
        assert_eq!(either("", "", &[]), "127.0.0.1:7401");
        assert_eq!(either("", "", &BOTH), "e:1,f:2");
        assert_eq!(either("", "", &BOTH[1..]), "http://u:1");
        assert_eq!(either("--url", "http://o:1", &BOTH), "http://o:1");
        assert_eq!(either("--endpoints", "o:1", &BOTH), "o:1");
        assert_eq!(
            either("", "", &[(ENDPOINTS, " ")]),
            "127.0.0.1:7401",
            "nothing is said by an empty variable"
        );
    }

    #[test]
    fn what_only_http_can_do_takes_http_wherever_it_is_named_and_is_refused_where_only_doors_are() {
        let http =
            |option, value, variables: &[_]| taken(&found(option, value, variables), Needs::Http("`ls`"));
        assert_eq!(http("", "", &[]), "http://127.0.0.1:7400");
        assert_eq!(http("", "", &BOTH), "http://u:1");
        assert_eq!(http("--url", "http://o:1", &BOTH), "http://o:1");
        let refused = http("", "", &BOTH[..1]);
        assert!(
            refused.starts_with("`ls` goes over HTTP only, and KUNCI_ENDPOINTS names native doors"),
            "{refused}"
        );
        let refused = http("--endpoints", "o:1", &BOTH);
        assert!(
            refused.contains("--endpoints names native doors") && refused.contains("with --url"),
            "{refused}"
        );
    }

    #[test]
    fn who_named_a_door_is_known() {
        assert_eq!(found("", "", &[]).source(), Source::Default);
        assert_eq!(found("", "", &BOTH[1..]).source(), Source::Variable);
        assert_eq!(found("--url", "http://o:1", &BOTH).source(), Source::Option);
    }

    /// A job that runs `kunci` itself finds the cluster that its lock is of, and no other.
    #[test]
    fn the_environment_for_others_names_one_cluster() {
        let variables = |doors: Doors| doors.variables().map(|(_, value)| value.unwrap_or_default());
        assert_eq!(variables(found("", "", &BOTH)), ["e:1,f:2", "http://u:1"]);
        assert_eq!(variables(found("--url", "http://o:1", &BOTH)), ["", "http://o:1"]);
        assert_eq!(variables(found("--endpoints", "o:1", &BOTH)), ["o:1", ""]);
        assert_eq!(variables(found("", "", &[])), [ENDPOINTS_DEFAULT, URL_DEFAULT]);
    }
}
