//! Programs that nuncio starts besides commands: where they run, and how they are confined.

pub(super) mod check_confinement;
pub(crate) mod confinement;
pub(super) mod program_place;
pub(super) mod workspace_variable;
