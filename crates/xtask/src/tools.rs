//! The programs of a checkout that the benchmark measures.

use std::path::{Path, PathBuf};

use anamnesis_lab::bench::Tools;

use crate::plugin::{self, Binary, Options, Profile};
use crate::{Result, python_version};

/// The root of a checkout.
pub(crate) struct Checkout<'a>(pub(crate) &'a Path);

impl Tools for Checkout<'_> {
    fn release_build(&self) -> Result<PathBuf> {
        Ok(plugin::own_build(self.0, Profile::Release)?.path)
    }

    fn assemble(&self, binary: &Path, out: &Path) -> Result {
        plugin::assemble(&Options {
            root: self.0.to_path_buf(),
            binaries: vec![Binary {
                target: plugin::host_target()?,
                path: binary.to_path_buf(),
            }],
            out: out.to_path_buf(),
        })
        .map(drop)
    }

    fn python_version(&self) -> std::result::Result<PathBuf, String> {
        python_version::install(self.0)
    }
}
