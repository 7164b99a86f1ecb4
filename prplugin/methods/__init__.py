"""Methods, one module each; `prplugin.methods.base` defines their interface."""
