//! The settings as options.
//!
//! Owns: one flag for each setting, made from the settings' own table, so that none can be forgotten. Never: a
//! name, a default or a help text of its own.

use super::AFTER_HELP;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use kunci_server::config::{FILE_VARIABLE, Kind, Setting};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

const FILE: &str = "config";

/// The flags of a node that were given.
#[derive(Debug, Default)]
pub(crate) struct ServerArgs {
    /// The values, unchecked.
    pub(crate) given: BTreeMap<Setting, OsString>,
    /// The settings file.
    pub(crate) file: Option<PathBuf>,
}

impl Args for ServerArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .long(FILE)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!("A TOML file with settings [env: {FILE_VARIABLE}]"));
        command.arg(file).args(Setting::ALL.map(flag)).after_help(AFTER_HELP)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServerArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let text = |setting: Setting| matches.get_one::<OsString>(setting.name()).cloned();
        self.given.extend(Setting::ALL.into_iter().filter_map(|setting| Some((setting, text(setting)?))));
        self.file = matches.get_one(FILE).cloned().or(self.file.take());
        Ok(())
    }
}

fn flag(setting: Setting) -> Arg {
    let long = setting.flag().trim_start_matches('-').to_owned();
    let arg =
        Arg::new(setting.name()).long(long).value_parser(value_parser!(OsString)).action(ArgAction::Set);
    let variable = setting.variable();
    let default = setting.default().map(|default| format!(" [default: {default}]")).unwrap_or_default();
    match setting.kind() {
        Kind::Switch => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("BOOL")
            .help(format!("{} [env: {variable}]", setting.help())),
        kind => {
            arg.value_name(value_name(kind)).help(format!("{} [env: {variable}]{default}", setting.help()))
        }
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Folder => "DIR",
        Kind::File => "FILE",
        Kind::Address => "IP:PORT",
        Kind::Advertised => "HOST:PORT",
        Kind::Name { .. } => "NAME",
        Kind::Switch => "BOOL",
        Kind::Word(_) => "FORMAT",
        Kind::Levels => "LEVEL",
        Kind::Number { .. } => "N",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(words: &str) -> BTreeMap<Setting, OsString> {
        let command = ServerArgs::augment_args(Command::new("server"));
        let matches = command.try_get_matches_from(words.split(' ')).unwrap();
        ServerArgs::from_arg_matches(&matches).unwrap().given
    }

    #[test]
    fn every_setting_has_its_flag() {
        for setting in Setting::ALL {
            let value = given(&format!("server {}=x", setting.flag()));
            assert_eq!(value, BTreeMap::from([(setting, OsString::from("x"))]));
        }
    }

    #[test]
    fn a_switch_alone_is_on_and_takes_no_word_behind_it() {
        assert_eq!(given("server --insecure --data d")[&Setting::Insecure], "true");
        assert_eq!(given("server --insecure=false")[&Setting::Insecure], "false");
    }

    #[test]
    fn a_flag_that_is_not_given_says_nothing() {
        assert!(given("server").is_empty());
    }
}
