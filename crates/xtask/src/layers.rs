//! Who may name whom.
//!
//! Owns: the table of crates and the allow-list of the core's dependencies. Never: looks inside a file; what a
//! crate can't name, it can't use.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeSet;

/// Each crate and the crates of ours that it may name, except in its own tests.
const LAYERS: [(&str, &[&str]); 13] = [
    ("kunci-types", &[]),
    ("kunci-process", &[]),
    ("kunci-core", &["kunci-types"]),
    ("kunci-replica", &["kunci-types", "kunci-process", "kunci-core"]),
    ("kunci-api", &["kunci-types"]),
    ("kunci-server", &["kunci-types", "kunci-process", "kunci-core", "kunci-replica", "kunci-api"]),
    ("kunci-client", &["kunci-types", "kunci-process", "kunci-api"]),
    ("kunci-bench", &["kunci-types", "kunci-client"]),
    ("kunci-oracle", &[]),
    ("kunci-fence", &["kunci-types"]),
    (
        "kunci-sim",
        &[
            "kunci-types",
            "kunci-process",
            "kunci-core",
            "kunci-replica",
            "kunci-api",
            "kunci-server",
            "kunci-client",
            "kunci-oracle",
        ],
    ),
    (
        "kunci-cli",
        &["kunci-types", "kunci-api", "kunci-client", "kunci-server", "kunci-bench", "kunci-fence"],
    ),
    ("xtask", &[]),
];

/// Every package that the core may pull in, with those of its dependencies.
const CORE_ALLOWED: &str = "crates/core/allowed-dependencies.txt";

/// Checks both, and fails with every difference.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    let mut command = run::cargo_command(repo);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--locked"]);
    let metadata =
        serde_json::from_str(&run::captured(command)?).context("parse the output of cargo metadata")?;
    let mut faults = layer_faults(&metadata)?;

    let mut command = run::cargo_command(repo);
    command.args(["tree", "--package", "kunci-core", "--edges", "normal", "--target", "all", "--locked"]);
    command.args(["--prefix", "none", "--format", "{p}"]);
    let tree = run::captured(command)?;
    let allowed = std::fs::read_to_string(repo.root().join(CORE_ALLOWED))
        .with_context(|| format!("read {CORE_ALLOWED}"))?;
    faults.extend(core_faults(&tree, &allowed));

    if faults.is_empty() {
        println!("layers: every crate keeps to its layer");
        return Ok(());
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    bail!("dependencies that aren't as the layers say: {}", faults.len());
}

fn layer_faults(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no `packages`")?;
    let mut faults = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package in cargo metadata has no `name`")?;
        let Some((_, may_name)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            faults.push(format!("{name} has no layer: add it to the table in crates/xtask/src/layers.rs"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let named = dependencies.iter().filter(|dependency| is_ours_and_ships(dependency));
        for other in named.filter_map(|dependency| dependency["name"].as_str()) {
            if !may_name.contains(&other) {
                let allowed =
                    if may_name.is_empty() { "none of ours".to_owned() } else { may_name.join(", ") };
                faults.push(format!(
                    "{name} names {other}, expected {allowed}: move what it needs down a layer"
                ));
            }
        }
    }
    Ok(faults)
}

/// A path leads to it, and it isn't only for tests.
fn is_ours_and_ships(dependency: &Value) -> bool {
    !dependency["path"].is_null() && dependency["kind"] != "dev"
}

fn core_faults(tree: &str, allowed: &str) -> Vec<String> {
    let found: BTreeSet<_> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let allowed: BTreeSet<_> = allowed
        .lines()
        .filter_map(|line| line.split('#').next())
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .collect();
    let extra = found.difference(&allowed).map(|name| {
        format!(
            "kunci-core pulls in {name}, which {CORE_ALLOWED} doesn't list: do without it, or list it there"
        )
    });
    let gone = allowed.difference(&found).map(|name| {
        format!("{CORE_ALLOWED} lists {name}, which kunci-core no longer pulls in: remove the line")
    });
    extra.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults_of(name: &str, dependencies: &Value) -> Vec<String> {
        let metadata = json!({ "packages": [{ "name": name, "dependencies": dependencies }] });
        layer_faults(&metadata).unwrap()
    }

    #[test]
    fn a_crate_may_name_the_layers_below_and_any_registry_crate() {
        let down = json!([
            { "name": "kunci-types", "path": "crates/types", "kind": null },
            { "name": "serde", "kind": null },
        ]);

        assert_eq!(faults_of("kunci-api", &down), [""; 0]);
    }

    #[test]
    fn a_crate_that_names_a_layer_above_is_refused_in_build_scripts_too() {
        for kind in [Value::Null, json!("build")] {
            let up = json!([{ "name": "kunci-replica", "path": "crates/replica", "kind": kind }]);

            assert_eq!(
                faults_of("kunci-core", &up),
                ["kunci-core names kunci-replica, expected kunci-types: move what it needs down a layer"]
            );
        }
    }

    #[test]
    fn tests_may_name_any_crate() {
        let dev = json!([{ "name": "kunci-replica", "path": "crates/replica", "kind": "dev" }]);

        assert_eq!(faults_of("kunci-core", &dev), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_layer_is_refused() {
        assert!(faults_of("kunci-extra", &json!([]))[0].starts_with("kunci-extra has no layer"));
    }

    #[test]
    fn the_list_of_the_core_is_exact_both_ways() {
        let tree = "kunci-core v0.1.0 (/somewhere)\ntwox-hash v2.1.0\nsyn v3.0.1 (*)\n";
        let allowed = "# ours\nkunci-core\nsyn # build time\nquote\n";

        let faults = core_faults(tree, allowed);

        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("kunci-core pulls in twox-hash"));
        assert!(faults[1].contains("lists quote"));
    }
}
