# Adds the operator tables to parallax_model as a generated source.
file(GLOB opset_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.ops)
list(JOIN opset_files "|" opset_files_argument)
set(opset_source ${CMAKE_CURRENT_BINARY_DIR}/opset_tables.cpp)
add_custom_command(
  OUTPUT ${opset_source}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${opset_source} "-DFILES=${opset_files_argument}" -P ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  DEPENDS ${opset_files} ${CMAKE_CURRENT_LIST_DIR}/embed.cmake
  COMMENT "Embedding operator tables" VERBATIM)
target_sources(parallax_model PRIVATE ${opset_source})
