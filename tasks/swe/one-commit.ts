/** Leaves the agent one commit of history. Later commits hold the answer, and earlier ones only show style. */

/**
 * Makes a new commit from the index, without parents, and drops all old objects. The work tree and the index stay unchanged, also
 * if an image's build changed files. In an image without git the folder is removed. All files stay on the work tree's file system:
 * git renames packs, and /tmp is another file system.
 */
export const oneCommit = `set -e
if [ -e .git ]; then
  if command -v git >/dev/null && [ -d .git ]; then
    git config --global --add safe.directory "$PWD"
    commit=$(git -c user.name=task -c user.email=task@localhost commit-tree -m 'The task' "$(git write-tree)")
    kept=$PWD/.git-one-commit
    mkdir "$kept"
    echo "$commit" | git pack-objects -q --revs "$kept/pack" >/dev/null
    cp .git/index "$kept/index"
    rm -rf .git
    git init -q .
    mkdir -p .git/objects/pack
    mv "$kept"/pack* .git/objects/pack/
    mv "$kept/index" .git/index
    rmdir "$kept"
    git update-ref HEAD "$commit"
  else
    rm -rf .git
  fi
fi`;
