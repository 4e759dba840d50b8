"""Only what pyproject.toml cannot say: the pages of docs/errors are shipped as `anyshape.pages`, for `anyshape explain`."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("src"), "anyshape.pages"],
    package_dir={"": "src", "anyshape.pages": "docs/errors"},
    package_data={
        "anyshape.pages": ["*.md"],
        "anyshape": [
            "py.typed",
            "contract/*.json",
            "deploying/assets/*",
            "report/page/assets/*",
            "report/page/templates/*.html",
        ],
    },
)
