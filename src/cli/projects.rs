//! Commands for settings, trust and the state of an installation.

pub(super) mod config_check;
pub(super) mod config_edit;
pub(super) mod config_flags;
pub(super) mod doctor;
pub(super) mod doctor_programs;
pub(super) mod editors;
mod json_text;
pub(super) mod rule_matches;
pub(super) mod settings_file;
pub(super) mod store_copy;
pub(super) mod trust;
pub(super) mod trust_programs;
pub(super) mod trust_report;
pub(super) mod workspace_flags;
pub(super) mod workspaces;
