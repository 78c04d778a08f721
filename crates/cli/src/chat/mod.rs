pub(crate) mod render;
pub(crate) mod tool;
pub(crate) mod output;
pub(crate) mod transcript;
pub(crate) mod view;
