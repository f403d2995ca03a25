//! Commands for settings, trust and the state of an installation.

pub(super) mod config;
pub(super) mod config_check;
pub(super) mod config_edit;
pub(super) mod doctor;
pub(super) mod doctor_programs;
pub(super) mod rule_matches;
pub(super) mod trust;
pub(super) mod trust_programs;
pub(super) mod trust_report;
pub(super) mod workspaces;
