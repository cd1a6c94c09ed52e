//! Edits in place, measured before in copies of the project that are built.

use super::Plan;
use super::args::ApplyArgs;
use super::duplicates::old_layouts;
use super::measure::{SpeedUp, compare, shell};
use super::project::FileEdit;
use super::undo;
use crate::interrupt;
use anyhow::{Context, Result, bail};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The result of `--apply`: were the edits written into the sources, built, and what speed-up did they bring.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    kept: bool,
    speed_up: Option<SpeedUp>,
    built: bool,
}

impl Applied {
    /// Returns `true` if the edits were written into the sources, `false` if they did not speed up the program enough.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Returns `true` if a copy of the project was built with the edits and its program has the promised layouts.
    pub(crate) fn is_built(&self) -> bool {
        self.built
    }

    /// Returns the measured speed-up by the edits; `None` if it was not measured.
    pub(crate) fn speed_up(&self) -> Option<&SpeedUp> {
        self.speed_up.as_ref()
    }
}

/// Measures the planned edits in copies of the project, as the options ask, and writes them into its sources if they pay.
/// `None` if there is nothing to edit.
pub(crate) fn carry_out(plan: &Plan, program: &Path, args: &ApplyArgs) -> Result<Option<Applied>> {
    if plan.edits.is_empty() {
        return Ok(None);
    }
    if let Err(why) = &plan.verified
        && !args.no_rebuild
        && args.build.is_none()
    {
        bail!(
            "nothing is edited, as it cannot be verified: {why}; --build verifies by the project's own build, \
             --no-rebuild edits without"
        );
    }
    let mut speed_up = None;
    if let Some(command) = &args.measure {
        let copies = Copies::new(plan)?;
        if let Some(build) = &args.build {
            shell(build, &copies.after, Stdio::null())?;
            is_of_edits(plan, program, &copies.after, args.trust)?;
            shell(build, &copies.before, Stdio::null())?;
        }
        speed_up = Some(compare(command, &copies.before, &copies.after, args.pairs.into())?);
    }
    let pays = match (&speed_up, args.keep_if) {
        (Some(speed_up), Some(least)) => speed_up.median >= least,
        _ => true,
    };
    interrupt::check()?;
    if pays {
        undo::apply(&plan.root, &plan.edits)?;
    }
    Ok(Some(Applied { kept: pays, speed_up, built: plan.is_built }))
}

/// Fails if the program that is measured with the edits does not have their layouts.
fn is_of_edits(plan: &Plan, program: &Path, copy: &Path, trusts: bool) -> Result<()> {
    let program = program.canonicalize().with_context(|| format!("cannot read {}", program.display()))?;
    let inside = program.strip_prefix(&plan.root).context("the program is outside of the project")?;
    let edited = plan.targets.iter().filter(|(_, refused)| refused.is_none());
    let edited: Vec<_> = edited.map(|(target, _)| target).collect();
    let found = old_layouts(&edited, &copy.join(inside), &inside.display().to_string(), trusts)?;
    match found.into_iter().flatten().next() {
        Some(refused) => bail!("{}", refused.evidence),
        None => Ok(()),
    }
}

/// Copies of a project, one as it is and one with the edits.
struct Copies {
    before: PathBuf,
    after: PathBuf,
    _folder: Folder,
}

impl Copies {
    fn new(plan: &Plan) -> Result<Copies> {
        let folder = Folder::new("measure")?;
        let [before, after] = ["before", "after"].map(|name| folder.0.join(name));
        copy_tree(&plan.root, &before)?;
        copy_tree(&plan.root, &after)?;
        write(&plan.root, &after, &plan.edits)?;
        Ok(Copies { before, after, _folder: folder })
    }
}

fn write(root: &Path, copy: &Path, edits: &[FileEdit]) -> Result<()> {
    for edit in edits {
        let inside =
            edit.path.strip_prefix(root).with_context(|| format!("{} is outside", edit.path.display()))?;
        write_anew(&copy.join(inside), &edit.new)?;
    }
    Ok(())
}

/// Writes a file of a copy in place of the one that is there: that may be read-only, or a link to another's.
pub(super) fn write_anew(path: &Path, text: &[u8]) -> Result<()> {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot remove {}", path.display()));
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a project with its times, without version control. Links into the project lead into the copy.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries.flatten() {
        if entry.file_name() == ".git" {
            continue;
        }
        let status = std::process::Command::new("cp").arg("-a").arg(entry.path()).arg(to).status();
        let status = status.context("cannot run cp")?;
        interrupt::check()?;
        anyhow::ensure!(status.success(), "cannot copy {} to {}", entry.path().display(), to.display());
    }
    let absolute =
        |path: &Path| path.canonicalize().with_context(|| format!("cannot read {}", path.display()));
    turn_links(&absolute(from)?, &absolute(to)?)
}

/// Points the links of a project's copy that lead into the project at the copy. Fails if one leads to a folder outside
/// of both, where a build would write.
fn turn_links(root: &Path, copy: &Path) -> Result<()> {
    let mut folders = vec![copy.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(named) = std::fs::read_link(&path).ok().filter(|_| kind.is_symlink()) else { continue };
            // one that leads nowhere yet may be made by the build
            let to = path.canonicalize().unwrap_or_else(|_| super::place::normal(&folder.join(named)));
            if to.starts_with(copy) {
                continue;
            }
            if let Ok(inside) = to.strip_prefix(root) {
                let turned = std::fs::remove_file(&path);
                let turned = turned.and_then(|()| std::os::unix::fs::symlink(copy.join(inside), &path));
                turned.with_context(|| format!("cannot write {}", path.display()))?;
            } else if to.is_dir() && !to.starts_with("/usr") {
                let link = path.strip_prefix(copy).map_or(path.clone(), |inside| root.join(inside));
                bail!(
                    "{} is a link to {}, outside of the project: a build in a copy of the project could write there",
                    link.display(),
                    to.display()
                );
            }
        }
    }
    Ok(())
}

/// A temporary folder of this process, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes a folder that is named by its purpose.
    pub(super) fn new(purpose: &str) -> Result<Folder> {
        // before there is something to leave behind
        interrupt::listen()?;
        let path = std::env::temp_dir().join(format!("tallyline-{purpose}-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Folder(path))
    }

    /// Returns the path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_ok() {
            return;
        }
        // folders that may not be written to, as of a cache of modules
        let mut chmod = std::process::Command::new("chmod");
        let _ = chmod.args(["-R", "u+rwX", "--"]).arg(&self.0).stderr(Stdio::null()).status();
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("tallyline: cannot remove the folder {}: {error}", self.0.display());
        }
    }
}
