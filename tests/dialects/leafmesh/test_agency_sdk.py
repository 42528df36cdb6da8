"""The parts of the LeafMesh SDK that the Python files of a mesh use. NOTES 8."""

from __future__ import annotations

import pytest

from tests.dialects.leafmesh.project import Project


def test_the_files_of_a_whole_project_can_be_imported(project: Project) -> None:
    project.write(
        {
            "main.py": """\
            import asyncio
            from leafmesh import LeafMesh

            sdk = LeafMesh.from_yaml("configs/config.yaml")

            async def my_human_handler(context, session_id, timeout):
                return {"human_decision": "approved"}

            sdk.register_human_handler("client", my_human_handler)

            async def main():
                await sdk.start()
                await sdk.mesh_call("go", input_data={"message": "Hello"})

            if __name__ == "__main__":
                asyncio.run(main())
            """,
            "agency/desk_agent.py": """\
            import importlib.util
            from leafmesh import AgentConfig, LeafMeshError, LeafMeshLogger, MeshTimeoutError, pre_compose, zapier
            from main import sdk

            logger = LeafMeshLogger(__name__)
            assert importlib.util.find_spec("leafmesh") is not None

            class DeskError(LeafMeshError): ...

            @sdk.intelligence()
            @pre_compose(context_processor=zapier(connection="sheets", action="find_row"))
            async def desk(first, input_data: dict, context: "AgentConfig"):
                logger.info("%s came in", "something", session_id=context["session_id"])
                logger.agent_call("desk")
                try:
                    raise DeskError("closed")
                except MeshTimeoutError:
                    return {"caught": "timeout"}
                except LeafMeshError as error:
                    return {"caught": str(error)}
            """,
        }
    )
    assert project.output() == {"caught": "closed"}


REGISTERED = """\
from leafmesh import LeafMesh, chain

sdk = LeafMesh.from_yaml("configs/config.yaml")

def shorten(result, context):
    return {"said": result["said"][:2]}

@sdk("desk")
@chain(shorten)
async def answer(first, input_data, context):
    return {"said": input_data["message"]}

def desk_b(first, input_data, context):
    return {}
"""


@pytest.mark.parametrize(
    "agency",
    [
        {"agency/desk_agent.py": REGISTERED},
        {"agency/desk_agent.py": REGISTERED.replace('@sdk("desk")', '@sdk.intelligence("desk")')},
        {"agency/desk_agent.py": "from agency.answers import sdk\n", "agency/answers.py": REGISTERED},
        {
            "agency/desk_agent.py": "import main\n",
            "main.py": REGISTERED.replace('@sdk("desk")\n', "") + 'sdk("desk")(answer)\n',
        },
    ],
)
def test_a_function_can_be_registered_for_an_agent_of_another_name(
    project: Project, agency: dict[str, str]
) -> None:
    project.write(agency)
    assert project.output(given="hello") == {"said": "he"}
    assert not project.warnings()
    assert not project.warnings(imports=False)


def test_a_function_that_is_registered_for_no_agent_is_a_warning(project: Project) -> None:
    project.write(
        {"agency/desk_agent.py": REGISTERED.replace('("desk")', '("dest")').replace("desk_b", "other")}
    )
    (warning,) = project.warnings()
    assert warning.message == "'answer' is registered for 'dest', which is not an agent"
    assert warning.hint == "did you mean 'desk'?"


def test_two_functions_for_one_agent_are_refused_whatever_their_names_are(project: Project) -> None:
    project.write({"agency/desk_agent.py": REGISTERED.replace("def desk_b(", "def desk(")})
    for imports in (True, False):
        (problem,) = project.problems(imports=imports)
        assert problem.message.startswith("agent 'desk' has two functions")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("LeafMesh().rerun_agent(agent_name='desk', session_id='s')", "LeafMesh.rerun_agent"),
        ("AgentConfig(name='x')", "leafmesh.AgentConfig"),
    ],
)
def test_a_part_of_the_sdk_that_does_not_run_here_says_so(project: Project, text: str, what: str) -> None:
    project.write(
        {
            "agency/desk_agent.py": f"""\
            from leafmesh import AgentConfig, LeafMesh

            async def desk(first, input_data, context):
                return {text}
            """
        }
    )
    error = project.run().observed.error
    assert error is not None
    assert error["type"] == "NotInStandIn"
    assert error["message"].startswith(f"{what} is a part of the LeafMesh SDK that does not run here")
